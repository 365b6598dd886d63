/// What one answer says of one subscription.
package struct SubscriptionEvidence: Sendable, Hashable {
    /// The subscription.
    package var originalTransactionID: OriginalTransactionID
    /// Apple's clock at the answer.
    package var asOf: Instant
    /// Its rows with an expiry, from both lists.
    package var transactions: [TransactionRow]
    /// Its rows of `pending_renewal_info`.
    package var renewals: [RenewalRow]
    /// The subscription of the same group whose row replaces an upgraded one of this, if the answer shows one.
    package var replacedBy: OriginalTransactionID?

    /// Evidence of one subscription from its parts.
    package init(
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
    package static func silence(
        of subscription: OriginalTransactionID, until instant: Instant
    ) -> SubscriptionEvidence {
        SubscriptionEvidence(originalTransactionID: subscription, asOf: instant, transactions: [])
    }
}
