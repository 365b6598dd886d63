import Crypto
import Foundation
import Postgres
import SQL
import Subscriptions

/// The secret end of the address that App Store Connect sends an app's notifications to: 64 hexadecimal digits.
///
/// Apple sends no key along, so the address itself keeps strangers out; only its hash is stored.
package struct NotificationToken: Sendable, Hashable {
    /// The text; it must not be logged.
    package let text: String

    /// A token of 256 random bits.
    init() {
        var generator = SystemRandomNumberGenerator()
        text = (0..<4).map { _ in
            let digits = String(UInt64.random(in: 0 ... .max, using: &generator), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// A token from an address; nil for a text of another form, which is none of ours.
    package init?(_ text: String) {
        let digits = (UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"))
        guard text.utf8.count == 64, text.utf8.allSatisfy({ digits.0.contains($0) || digits.1.contains($0) })
        else { return nil }
        self.text = text
    }

    /// What is stored and looked up: comparing hashes tells a guesser nothing about the token.
    var digest: [UInt8] { [UInt8](SHA256.hash(data: Data(text.utf8))) }
}

extension SubscriptionLedger {
    /// Makes the app's address for notifications and returns its secret end in clear, the only time it can be seen; an
    /// earlier address ends.
    package func openNotifications(of bundleID: BundleID) async throws -> NotificationToken {
        let token = NotificationToken()
        try await setNotifications(of: bundleID, digest: token.digest)
        return token
    }

    /// Ends the app's address for notifications.
    package func closeNotifications(of bundleID: BundleID) async throws {
        try await setNotifications(of: bundleID, digest: nil)
    }

    /// The app whose address ends in the token, or nil.
    package func notifiedApp(at token: NotificationToken) async throws -> NotifiedApp? {
        try await query(Queries.findNotifiedApp, [.bytea(token.digest)]).first.map { row in
            NotifiedApp(id: try row.int4("app_id"), bundleID: BundleID(try row.text("bundle_id")))
        }
    }

    private func setNotifications(of bundleID: BundleID, digest: [UInt8]?) async throws {
        let rows = try await write(
            Queries.setNotificationDigest, [.text(bundleID.text), .bytea(digest)], audited: .appChanged, app: bundleID,
            detail: ["notifications": digest == nil ? "off" : "on"])
        if rows.isEmpty { _ = try await app(bundleID) }
    }
}
