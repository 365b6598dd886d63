import Ledger
import Subscriptions
import Synchronization

/// The apps seen lately with their settings, so that not every lookup has to ask for them.
///
/// Only apps that exist are remembered, so a new app is known at once; a changed setting shows after a minute at most.
final class KnownApps: Sendable {
    private static let secondsMax = 60
    private static let entriesMax = 1000

    private let ledger: SubscriptionLedger
    private let known = Mutex(ShortMemory<BundleID, App>(entriesMax: entriesMax, seconds: secondsMax))

    /// The apps of a ledger.
    init(_ ledger: SubscriptionLedger) {
        self.ledger = ledger
    }

    /// The app, where that is known without asking.
    func known(_ bundleID: BundleID, at now: ContinuousClock.Instant) -> App? {
        known.withLock { $0.value(for: bundleID, at: now) }
    }

    /// The app; throws a problem unless it is registered.
    @discardableResult
    func require(_ bundleID: BundleID) async throws -> App {
        let asked = ContinuousClock.now
        if let app = known(bundleID, at: asked) { return app }
        guard let app = try await ledger.registeredApp(bundleID) else { throw Problem.unknownApp(bundleID.text) }
        known.withLock { $0.keep(app, for: bundleID, at: asked) }
        return app
    }
}
