/// What one answer says of one subscription.
public struct SubscriptionEvidence: Sendable, Hashable {
    /// The subscription.
    public var originalTransactionID: OriginalTransactionID
    /// Apple's clock at the answer.
    public var asOf: Instant
    /// Its rows with an expiry, from both lists.
    public var transactions: [TransactionRow]
    /// Its rows of `pending_renewal_info`.
    public var renewals: [RenewalRow]
    /// The subscription of the same group whose row replaces an upgraded one of this, if the answer shows one.
    public var replacedBy: OriginalTransactionID?

    /// Evidence of one subscription from its parts.
    public init(
        originalTransactionID: OriginalTransactionID, asOf: Instant, transactions: [TransactionRow],
        renewals: [RenewalRow] = [], replacedBy: OriginalTransactionID? = nil
    ) {
        self.originalTransactionID = originalTransactionID
        self.asOf = asOf
        self.transactions = transactions
        self.renewals = renewals
        self.replacedBy = replacedBy
    }

    /// No news until an instant: what is settled when the outage allowance of a held subscription runs out.
    ///
    /// It moves the clock to the end of the hold, so that the end of access is told once.
    public static func silence(
        of subscription: OriginalTransactionID, until instant: Instant
    ) -> SubscriptionEvidence {
        SubscriptionEvidence(originalTransactionID: subscription, asOf: instant, transactions: [])
    }
}
