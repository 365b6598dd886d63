import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// The secret last part of an app's notification address for App Store Connect: 64 hexadecimal digits.
///
/// Apple sends no key, so the address itself keeps strangers out; only its hash is stored.
package struct NotificationToken: Sendable, Hashable {
    /// The text; it must not be logged.
    package let text: String

    /// Creates a token from 256 random bits.
    init() {
        var generator = SystemRandomNumberGenerator()
        text = (0..<4).map { _ in
            let digits = String(UInt64.random(in: 0 ... .max, using: &generator), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Creates a token from an address; nil when the text is not 64 lowercase hexadecimal digits.
    package init?(_ text: String) {
        let digits = (UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"))
        guard text.utf8.count == 64, text.utf8.allSatisfy({ digits.0.contains($0) || digits.1.contains($0) })
        else { return nil }
        self.text = text
    }

    /// The stored hash, used for lookup: comparing hashes reveals nothing about the token.
    var digest: [UInt8] { [UInt8](SHA256.hash(data: Data(text.utf8))) }
}

extension LedgerApps {
    /// Creates the app's notification address and returns its secret part in plain text, which cannot be read again; an
    /// earlier address becomes invalid. Throws `notFound` for an unknown app.
    package func openNotifications(of bundleID: BundleID) async throws -> NotificationToken {
        let token = NotificationToken()
        try await setNotifications(of: bundleID, digest: token.digest)
        return token
    }

    /// Removes the app's notification address; throws `notFound` for an unknown app.
    package func closeNotifications(of bundleID: BundleID) async throws {
        try await setNotifications(of: bundleID, digest: nil)
    }

    /// Returns the app whose address ends in the token; nil when there is none.
    package func notifiedApp(at token: NotificationToken) async throws -> NotifiedApp? {
        try await query(Queries.findNotifiedApp, [.bytea(token.digest)]).first.map(NotifiedApp.init(row:))
    }

    private func setNotifications(of bundleID: BundleID, digest: [UInt8]?) async throws {
        let rows = try await write(
            Queries.setNotificationDigest, [.text(bundleID.text), .bytea(digest)], audited: .appChanged, app: bundleID,
            detail: ["notifications": digest == nil ? "off" : "on"])
        if rows.isEmpty { _ = try await app(bundleID) }
    }
}

extension NotifiedApp {
    init(row: Row) throws {
        self.init(
            id: try row.int4("app_id"), bundleID: BundleID(try row.text("bundle_id")),
            appleAppID: try row.int8IfPresent("apple_app_id"), sandboxAllowed: try row.bool("sandbox_allowed"),
            hasServerKey: try row.bool("has_key"),
            now: try row.instant("now"))
    }
}
