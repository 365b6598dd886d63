import Crypto
import Foundation
import Postgres
import SQL

/// A running session of the admin page.
package struct AdminSession: Sendable, Hashable {
    /// The number of the key that opened the session.
    package let keyID: Int32
    /// The token in every form of the session; a page of another site cannot know it.
    package let formToken: String

    /// Creates a session whose form token is derived from the browser's `secret`.
    package init(keyID: Int32, secret: String) {
        self.keyID = keyID
        formToken = SHA256.hash(data: Data("form of \(secret)".utf8)).hexadecimal
    }
}

extension LedgerAdmin {
    /// The length of a session, in seconds: a working day.
    package static let sessionSeconds = 12.0 * 3_600

    /// Opens a session for a key and returns the session's secret for the browser.
    ///
    /// Only a hash of the secret is stored. The audit log records the key as the actor.
    package func openSession(of key: APIKey) async throws -> String {
        var generator = SystemRandomNumberGenerator()
        let secret = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }.hexadecimal
        _ = try await ledger.acting(as: .key(key.id)).write(
            Queries.openSession,
            [.bytea(Self.digest(ofSession: secret)), .int4(key.id), .float8(Self.sessionSeconds)],
            audited: .signedIn)
        return secret
    }

    /// Returns the running session with this secret; nil when the session ended or its key was revoked.
    package func session(withSecret secret: String) async throws -> AdminSession? {
        // Read from the primary: a standby may not have a session that was opened a moment ago.
        let rows = try await query(Queries.findSession, [.bytea(Self.digest(ofSession: secret))])
        return try rows.first.map { AdminSession(keyID: try $0.int4("key_id"), secret: secret) }
    }

    /// Ends a session of a key immediately.
    package func closeSession(withSecret secret: String, of keyID: Int32) async throws {
        _ = try await ledger.acting(as: .key(keyID)).write(
            Queries.closeSession, [.bytea(Self.digest(ofSession: secret))], audited: .signedOut)
    }

    private static func digest(ofSession secret: String) -> [UInt8] {
        [UInt8](SHA256.hash(data: Data(secret.utf8)))
    }
}

extension Sequence<UInt8> {
    /// Two lowercase hexadecimal digits for each byte.
    fileprivate var hexadecimal: String {
        map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
