import Ledger
import Subscriptions
import Synchronization

/// The apps seen lately, to tell an unknown app from a customer who has nothing without asking each time.
///
/// Only apps that exist are remembered, so a new app is known at once.
final class KnownApps: Sendable {
    private static let secondsMax = 60
    private static let entriesMax = 1000

    private let ledger: SubscriptionLedger
    private let known = Mutex(ShortMemory<BundleID, Bool>(entriesMax: entriesMax, seconds: secondsMax))

    /// The apps of a ledger.
    init(_ ledger: SubscriptionLedger) {
        self.ledger = ledger
    }

    /// Throws a problem unless the app is registered.
    func require(_ bundleID: BundleID) async throws {
        let asked = ContinuousClock.now
        if known.withLock({ $0.value(for: bundleID, at: asked) }) == true { return }
        guard try await ledger.apps().contains(where: { $0.bundleID == bundleID }) else {
            throw Problem.unknownApp(bundleID.text)
        }
        known.withLock { $0.keep(true, for: bundleID, at: asked) }
    }
}
