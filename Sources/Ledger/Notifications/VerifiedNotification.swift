package import Subscriptions

/// A notification whose signatures were verified when it came: what Apple states in it is true.
package struct VerifiedNotification: Sendable, Hashable {
    /// Apple's name of the event, such as `REFUND`.
    package var kind: String
    /// Apple's subtype of the event.
    package var subkind: String?
    /// `notificationUUID`, the same in every repetition.
    package var appleID: String
    /// The environment of the purchase; nil where it is about none.
    package var environment: StoreEnvironment?
    /// The subscription or one-time purchase it is about; nil where it is about none.
    package var originalTransactionID: OriginalTransactionID?
    /// The transaction it holds.
    package var transactionID: TransactionID?
    /// The account token in that transaction.
    package var accountToken: String?
    /// When Apple signed it.
    package var signedAt: Instant
    /// Its texts, packed.
    package var texts: [UInt8]
    /// Whether it holds a transaction or renewal information.
    package var holdsFacts: Bool

    /// Creates a notification from its parts.
    package init(
        kind: String, subkind: String?, appleID: String, environment: StoreEnvironment?,
        originalTransactionID: OriginalTransactionID?, transactionID: TransactionID?, accountToken: String? = nil,
        signedAt: Instant, texts: [UInt8], holdsFacts: Bool
    ) {
        self.kind = kind
        self.subkind = subkind
        self.appleID = appleID
        self.environment = environment
        self.originalTransactionID = originalTransactionID
        self.transactionID = transactionID
        self.accountToken = accountToken
        self.signedAt = signedAt
        self.texts = texts
        self.holdsFacts = holdsFacts
    }
}

/// A stored notification that was verified when it came.
package struct KeptNotification: Sendable {
    /// Its number.
    package let id: Int64
    /// The environment of the purchase.
    package let environment: StoreEnvironment
    /// Its texts, packed; nil once they were removed.
    package let texts: [UInt8]?
    /// The claims that were kept instead, as JSON.
    package let claims: String?
}

/// A function that reads the evidence in a stored notification by the present rules; nil where it holds none.
package typealias ReadNotification = @Sendable (KeptNotification) -> Evidence?
