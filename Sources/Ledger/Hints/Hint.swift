import Subscriptions

/// What a notification of Apple's says of itself. Nobody has verified it: it may hasten a question, it decides nothing.
package struct Hint: Sendable, Hashable {
    /// The two forms Apple sends notifications in.
    package enum Version: Int16, Sendable {
        /// `notification_type` and its fellows, unsigned.
        case one = 1
        /// `signedPayload`.
        case two = 2
    }

    /// The form.
    package var version: Version
    /// Apple's word for what happened, such as `REFUND`; at most 64 bytes.
    package var kind: String
    /// Apple's word for how, such as `BILLING_RECOVERY`.
    package var subkind: String?
    /// `notificationUUID`, the same in each repetition; version 1 has none.
    package var appleID: String?
    /// The app it names, if it names one.
    package var bundleID: BundleID?
    /// Where the purchase was made; nil when it does not say, or names neither of Apple's servers.
    package var environment: StoreEnvironment?
    /// The subscription or one-time purchase it names, if it names one.
    package var originalTransactionID: OriginalTransactionID?
    /// The JSON to keep, without any password.
    package var body: String

    /// A hint with its parts.
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

/// What a hint did.
package enum HintEffect: String, Sendable, CaseIterable {
    /// Apple is asked about it within seconds, or within a minute of the last time a hint wanted that.
    case pulled
    /// Apple is being asked about it, and will be again.
    case awaited
    /// It names no subscription or purchase.
    case noSubscription = "no_subscription"
    /// Nothing that we know of and ask about has its name.
    case unknown
    /// It is about another app.
    case ignored
    /// It was here before.
    case repeated
}

/// An app as the address of its notifications tells it.
package struct NotifiedApp: Sendable, Hashable {
    /// The app's key in the ledger.
    package let id: Int32
    /// Apple's bundle id.
    package let bundleID: BundleID
}
