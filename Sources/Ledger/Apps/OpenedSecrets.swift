import Subscriptions
import Synchronization

/// The opened secrets of apps, for as long as their sealed ones stay: they are needed for every question.
final class OpenedSecrets: Sendable {
    private struct Opened {
        let sealed: [[UInt8]?]
        let secrets: AppSecrets
    }

    private let byApp = Mutex<[BundleID: Opened]>([:])

    /// The secrets of an app, opened now unless they were before.
    func secrets(of app: App, open: ([UInt8]?) throws -> String?) rethrows -> AppSecrets {
        let sealed = [app.sealedSecret, app.sealedPreviousSecret]
        if let known = byApp.withLock({ $0[app.bundleID] }), known.sealed == sealed { return known.secrets }
        let secrets = AppSecrets(
            current: try open(app.sealedSecret), previous: try open(app.sealedPreviousSecret))
        byApp.withLock { $0[app.bundleID] = Opened(sealed: sealed, secrets: secrets) }
        return secrets
    }
}
