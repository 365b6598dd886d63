import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// The content of a notification from Apple. It is not verified: it may bring a check forward, but it decides nothing.
package struct UnverifiedNotification: Sendable, Hashable {
    /// The two formats of Apple's notifications.
    package enum Version: Int16, Sendable {
        /// `notification_type` and its related fields, unsigned.
        case one = 1
        /// `signedPayload`.
        case two = 2
    }

    package var version: Version
    /// Apple's name of the event, such as `REFUND`; at most 64 bytes.
    package var kind: String
    /// Apple's subtype of the event, such as `BILLING_RECOVERY`.
    package var subkind: String?
    /// `notificationUUID`, the same in every repetition; version 1 has none.
    package var appleID: String?
    package var bundleID: BundleID?
    /// The environment of the purchase; nil when the notification has none, or names neither of Apple's servers.
    package var environment: StoreEnvironment?
    /// The subscription or one-time purchase it names, if it names one.
    package var originalTransactionID: OriginalTransactionID?
    /// The JSON to store, without any password.
    package var body: String

    package init(
        version: Version, kind: String, subkind: String? = nil, appleID: String? = nil, bundleID: BundleID? = nil,
        environment: StoreEnvironment? = nil, originalTransactionID: OriginalTransactionID? = nil, body: String
    ) {
        self.version = version
        self.kind = kind
        self.subkind = subkind
        self.appleID = appleID
        self.bundleID = bundleID
        self.environment = environment
        self.originalTransactionID = originalTransactionID
        self.body = body
    }
}

/// The effect of a notification.
package enum NotificationEffect: String, Sendable, CaseIterable {
    /// A check follows within seconds, or within a minute of the last check that a notification requested.
    case pulled
    /// A check is already under way; another one follows.
    case awaited
    /// It names no subscription or purchase.
    case noSubscription = "no_subscription"
    /// No subscription or purchase that we know and poll has its id.
    case unknown
    /// It is about another app.
    case ignored
    case repeated
    /// Version 1, with a password that is not the app's secret: nothing was asked.
    case wrongPassword = "wrong_password"
    /// It is verified, and the receipt that polls its subject is asked about until an answer shows what it states.
    case asked
    /// It is verified, and the planned check shows what it states: a renewal of what runs for another hour.
    case planned
    /// It is verified, and no receipt polls its subject, which is known by notification only.
    case unpolled
    /// It is verified, and no answer showed what it states.
    case unshown
    /// It is verified, and its details are part of the ledger.
    case applied
    /// It is verified and holds no transaction and no renewal.
    case noFacts = "no_facts"
}

extension LedgerIntake {
    /// The minimum interval between a check of a receipt and the next one that notifications request, in seconds.
    static let secondsApart = 60.0
    /// The minimum of these delays with an accelerated App Store, in seconds.
    static let delaySecondsMin = 0.25
    /// The retention of notifications, in days.
    package static let notificationDays: Int32 = 90
    /// How long the ids of verified notifications are remembered, in days: longer than Apple's history.
    static let notificationIDDays: Int32 = 200
    static let notificationsPrunedMax: Int32 = 1_000

    /// Stores an unverified notification and brings the next check of what it names forward, in one statement, within
    /// the app's call budget and circuit breaker. The notification changes nothing else, whatever it claims.
    @discardableResult
    package func keep(
        _ notification: UnverifiedNotification, for app: NotifiedApp, unverified reason: String? = nil
    ) async throws -> NotificationEffect {
        let rows = try await write(
            Queries.storeNotification, .int4(app.id), .int2(notification.version.rawValue), .text(notification.kind),
            .text(notification.subkind), .text(notification.appleID), .text(notification.environment?.rawValue),
            .text(notification.originalTransactionID?.text), .text(notification.body),
            .bool(notification.bundleID.map { $0 != app.bundleID } ?? false), .float8(waitSeconds),
            .float8(apartSeconds), .text(reason))
        return try rows.first?.word("effect") ?? .repeated
    }

    /// Removes the oldest notifications past their retention, a bounded number at a time; returns how many.
    @discardableResult
    package func pruneNotifications(olderThanDays days: Int32 = notificationDays) async throws -> Int {
        let rows = try await write(
            Queries.pruneNotifications, .int4(days), .int4(Self.notificationsPrunedMax), .int4(Self.notificationIDDays))
        return Int(try rows.first?.int8("removed") ?? 0)
    }
}

/// Whether the password of a notification of version 1 is the app's shared secret.
package enum PasswordVerdict: Sendable, Hashable {
    /// It is the secret, or the one before.
    case right
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
        return known.map { code($0) == given }.contains(true) ? .right : .wrong
    }
}
