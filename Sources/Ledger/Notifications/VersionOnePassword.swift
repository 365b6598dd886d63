import Crypto
import Foundation
package import Subscriptions

/// Whether the password of a notification of version 1 is the app's shared secret.
package enum PasswordVerdict: Sendable, Hashable {
    /// It is the secret, or the one before.
    case right
    /// It is another one.
    case wrong
    /// There is no password, or the app has no secret to compare with.
    case unknown
}

extension LedgerApps {
    /// Compares a password with the app's secrets, in a time that does not depend on where they differ.
    package func checkPassword(_ password: String?, of bundleID: BundleID) async throws -> PasswordVerdict {
        guard let password else { return .unknown }
        let secrets = try secrets(of: try await app(bundleID))
        let known = [secrets.current, secrets.previous].compactMap(\.self)
        guard !known.isEmpty else { return .unknown }
        let key = SymmetricKey(size: .bits256)
        func code(_ text: String) -> HMAC<SHA256>.MAC {
            HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key)
        }
        let given = code(password)
        // Every secret is compared, so that the time does not show which one fits.
        let matches = known.map { code($0) == given }
        return matches.contains(true) ? .right : .wrong
    }
}
