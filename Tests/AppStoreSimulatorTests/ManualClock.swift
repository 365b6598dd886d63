import Synchronization

@testable import AppStoreSimulator

/// A clock that stands still until the test moves it.
final class ManualClock: Sendable {
    /// 2025-01-10 09:00:00 GMT, a round second.
    static let start: Int64 = 1_736_499_600_000

    private let present: Mutex<Int64>

    init(_ milliseconds: Int64 = ManualClock.start) {
        present = Mutex(milliseconds)
    }

    var clock: SimulatorClock {
        SimulatorClock { self.present.withLock { $0 } }
    }

    func move(seconds: Double) {
        present.withLock { $0 += Int64(seconds * 1000) }
    }

    /// A store with months of 60 seconds; it has no customers but those that the test creates.
    func emptyStore(seed: UInt64 = 7) -> Simulator {
        var options = SimulatorOptions(seed: seed)
        options.customers = 0
        options.sandboxCustomers = 0
        return Simulator(options, clock: clock)
    }
}
