import Ledger
import Subscriptions
import Synchronization

/// A cache of recently used apps with their settings, so that not every lookup queries them.
///
/// Only apps that exist are cached, so a new app is known at once. A changed setting shows after a minute at most.
final class KnownApps: Sendable {
    private static let secondsMax = 60
    private static let entriesMax = 1000

    private let ledger: SubscriptionLedger
    private let known = Mutex(TTLCache<BundleID, App>(entriesMax: entriesMax, seconds: secondsMax))

    /// Creates a cache of the apps of a ledger.
    init(_ ledger: SubscriptionLedger) {
        self.ledger = ledger
    }

    /// Returns the app if it is cached.
    private func known(_ bundleID: BundleID, at now: ContinuousClock.Instant) -> App? {
        known.withLock { $0.value(for: bundleID, at: now) }
    }

    /// Returns the app. Throws a problem unless it is registered.
    @discardableResult
    func require(_ bundleID: BundleID) async throws -> App {
        let asked = ContinuousClock.now
        if let app = known(bundleID, at: asked) { return app }
        guard let app = try await ledger.apps.registered(bundleID) else { throw Problem.unknownApp(bundleID.text) }
        known.withLock { $0.keep(app, for: bundleID, at: asked) }
        return app
    }
}
