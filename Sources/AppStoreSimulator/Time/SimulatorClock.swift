import Foundation

/// The simulator's source of time. Tests pass a clock that they control.
package struct SimulatorClock: Sendable {
    /// Returns the present instant in milliseconds since 1970.
    package let milliseconds: @Sendable () -> Int64

    /// Creates a clock from a closure that returns milliseconds since 1970.
    package init(milliseconds: @escaping @Sendable () -> Int64) {
        self.milliseconds = milliseconds
    }

    /// The machine's clock.
    package static let system = SimulatorClock {
        Int64((Date().timeIntervalSince1970 * 1000).rounded(.down))
    }

    var now: StoreTime { StoreTime(milliseconds: milliseconds()) }
}
