/// The part of one answer about one subscription.
package struct SubscriptionEvidence: Sendable, Hashable {
    /// The subscription.
    package var originalTransactionID: OriginalTransactionID
    /// Apple's clock at the answer.
    package var asOf: Instant
    /// Its rows with an expiry, from both lists.
    package var transactions: [TransactionRow]
    /// Its rows of `pending_renewal_info`.
    package var renewals: [RenewalRow]
    /// The subscription of the same group whose row replaces an upgraded row of this one, if the answer shows one.
    package var replacedBy: OriginalTransactionID?

    /// Creates evidence about one subscription from its parts.
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

    /// Returns evidence of no news until an instant, to be settled when a subscription's outage allowance runs out.
    ///
    /// It moves the clock to the end of the allowance, so that the end of access is reported once.
    package static func silence(
        of subscription: OriginalTransactionID, until instant: Instant
    ) -> SubscriptionEvidence {
        SubscriptionEvidence(originalTransactionID: subscription, asOf: instant, transactions: [])
    }
}
