import Subscriptions
import Synchronization

/// A cache of the apps' opened secrets, which every call to Apple needs. An entry is valid until the sealed secrets
/// change.
final class OpenedSecrets: Sendable {
    private struct Opened {
        let sealed: [[UInt8]?]
        let secrets: AppSecrets
    }

    private let byApp = Mutex<[BundleID: Opened]>([:])

    /// Returns the secrets of an app; opens them only if they are not cached.
    func secrets(of app: App, open: ([UInt8]?) throws -> String?) rethrows -> AppSecrets {
        let sealed = [app.sealedSecret, app.sealedPreviousSecret]
        if let known = byApp.withLock({ $0[app.bundleID] }), known.sealed == sealed { return known.secrets }
        let secrets = AppSecrets(
            current: try open(app.sealedSecret), previous: try open(app.sealedPreviousSecret))
        byApp.withLock { $0[app.bundleID] = Opened(sealed: sealed, secrets: secrets) }
        return secrets
    }
}
