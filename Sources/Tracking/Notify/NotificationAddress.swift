import Postgres
import SQL
package import Subscriptions

/// The app that a notification address belongs to.
package struct NotifiedApp: Sendable, Hashable {
    package let id: Int32
    package let bundleID: BundleID
    /// Apple's number of the app; nil where it is not compared.
    package let appleAppID: Int64?
    package let sandboxAllowed: Bool
    /// Whether the Server API can be asked about it.
    package let hasServerKey: Bool
    package let now: Instant

    fileprivate init(row: Row) throws {
        id = try row.int4("app_id")
        bundleID = try row.id("bundle_id")
        appleAppID = try row.int8IfPresent("apple_app_id")
        sandboxAllowed = try row.bool("sandbox_allowed")
        hasServerKey = try row.bool("has_key")
        now = try row.instant("now")
    }
}

/// The secret last part of an app's notification address for App Store Connect: 64 hexadecimal digits. Apple sends no
/// key, so the address itself keeps strangers out; only its hash is stored.
package struct NotificationToken: Sendable, Hashable {
    /// The text; it must not be logged.
    package let text: String

    init() { text = .randomHexadecimal(digits: 64) }

    /// Creates a token from an address; nil when the text is not 64 lowercase hexadecimal digits.
    package init?(_ text: String) {
        guard text.utf8.count == 64, text.utf8.allSatisfy(\.isLowerHex) else { return nil }
        self.text = text
    }

    /// The stored hash, used for lookup: comparing hashes reveals nothing about the token.
    var digest: [UInt8] { text.sha256 }
}

extension LedgerApps {
    /// Replaces the app's notification address; returns its secret part only now. Throws `unknownApp` for an unknown app.
    package func openNotifications(of bundleID: BundleID) async throws -> NotificationToken {
        let token = NotificationToken()
        try await setNotificationAddress(of: bundleID, digest: token.digest)
        return token
    }

    /// Removes the app's notification address; throws `unknownApp` for an unknown app.
    package func closeNotifications(of bundleID: BundleID) async throws {
        try await setNotificationAddress(of: bundleID, digest: nil)
    }

    /// Returns the app whose address ends in the token; nil when there is none.
    package func notifiedApp(at token: NotificationToken) async throws -> NotifiedApp? {
        try await query(Queries.findNotifiedApp, .bytea(token.digest)).first.map(NotifiedApp.init(row:))
    }

    private func setNotificationAddress(of bundleID: BundleID, digest: [UInt8]?) async throws {
        let rows = try await write(
            Queries.setNotificationDigest, .text(bundleID.text), .bytea(digest), audited: .appChanged, app: bundleID,
            detail: ["notifications": digest == nil ? "off" : "on"])
        if rows.isEmpty { _ = try await app(bundleID) }
    }
}
