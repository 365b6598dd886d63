import Foundation

/// Where the simulator reads the time. Tests pass a clock they move by hand.
package struct SimulatorClock: Sendable {
    /// Answers the present instant in milliseconds since 1970.
    package let milliseconds: @Sendable () -> Int64

    /// Makes a clock of one closure, which answers milliseconds since 1970.
    package init(milliseconds: @escaping @Sendable () -> Int64) {
        self.milliseconds = milliseconds
    }

    /// The machine's own clock.
    package static let system = SimulatorClock {
        Int64((Date().timeIntervalSince1970 * 1000).rounded(.down))
    }

    var now: Moment { Moment(milliseconds: milliseconds()) }
}
