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

    /// The format.
    package var version: Version
    /// Apple's name of the event, such as `REFUND`; at most 64 bytes.
    package var kind: String
    /// Apple's subtype of the event, such as `BILLING_RECOVERY`.
    package var subkind: String?
    /// `notificationUUID`, the same in every repetition; version 1 has none.
    package var appleID: String?
    /// The app it names, if it names one.
    package var bundleID: BundleID?
    /// The environment of the purchase; nil when the notification has none, or names neither of Apple's servers.
    package var environment: StoreEnvironment?
    /// The subscription or one-time purchase it names, if it names one.
    package var originalTransactionID: OriginalTransactionID?
    /// The JSON to store, without any password.
    package var body: String

    /// Creates a notification from its parts.
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
    /// It is a repetition.
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
    /// It is verified, and an earlier edition took it for facts.
    case stated
    /// It is verified and holds no transaction and no renewal.
    case noFacts = "no_facts"
}

/// The app that a notification address belongs to.
package struct NotifiedApp: Sendable, Hashable {
    /// The app's key in the ledger.
    package let id: Int32
    /// Apple's bundle id.
    package let bundleID: BundleID
    /// Apple's number of the app; nil where it is not compared.
    package let appleAppID: Int64?
    /// Whether it accepts sandbox purchases.
    package let sandboxAllowed: Bool
    /// Whether the Server API can be asked about it.
    package let hasServerKey: Bool
    /// The database's clock.
    package let now: Instant
}
