/// What one verified answer says, with Apple's clock and the path of every row.
public struct Evidence: Sendable {
    /// Where the purchases were made.
    public var environment: StoreEnvironment
    /// The app the answer names, if it names one.
    public var bundleID: BundleID?
    /// Apple's clock at the answer: `request_date`.
    public var asOf: Instant
    /// `receipt_creation_date`.
    public var receiptCreatedAt: Instant?
    /// Rows of both lists, in the answer's order.
    public var transactions: [TransactionRow]
    /// Rows of `pending_renewal_info`, in the answer's order.
    public var renewals: [RenewalRow]

    /// Evidence from its parts.
    public init(
        environment: StoreEnvironment, bundleID: BundleID? = nil, asOf: Instant, receiptCreatedAt: Instant? = nil,
        transactions: [TransactionRow] = [], renewals: [RenewalRow] = []
    ) {
        self.environment = environment
        self.bundleID = bundleID
        self.asOf = asOf
        self.receiptCreatedAt = receiptCreatedAt
        self.transactions = transactions
        self.renewals = renewals
    }

    /// The subscriptions it has rows of, sorted. A row without an expiry is no subscription.
    public var subscriptions: [OriginalTransactionID] {
        Set(transactions.filter { $0.expiresAt != nil }.map(\.originalTransactionID)).sorted()
    }

    /// What it says of one subscription.
    public func slice(of subscription: OriginalTransactionID) -> SubscriptionEvidence {
        let rows = transactions.filter { $0.originalTransactionID == subscription && $0.expiresAt != nil }
        return SubscriptionEvidence(
            originalTransactionID: subscription, asOf: asOf, transactions: rows,
            renewals: renewals.filter { $0.originalTransactionID == subscription },
            replacedBy: replacement(of: subscription, rows))
    }

    /// What it says of one-time purchases, sorted by original transaction and product.
    public var purchases: [PurchaseEvidence] {
        let rows = transactions.filter { $0.expiresAt == nil }
        let byKey = Dictionary(grouping: rows) {
            PurchaseKey(originalTransactionID: $0.originalTransactionID, productID: $0.productID)
        }
        return byKey.sorted { $0.key < $1.key }.map {
            PurchaseEvidence(key: $0.key, asOf: asOf, transactions: $0.value)
        }
    }

    /// Another subscription of the same group that took over where an upgraded row ended.
    private func replacement(of subscription: OriginalTransactionID, _ rows: [TransactionRow]) -> OriginalTransactionID?
    {
        var found: OriginalTransactionID?
        for replaced in rows where replaced.isUpgraded && replaced.groupID != nil {
            let end = replaced.cancelledAt ?? replaced.purchasedAt
            for row in transactions
            where row.originalTransactionID != subscription && row.groupID == replaced.groupID
                && row.cancelledAt == nil && !row.isUpgraded && row.purchasedAt >= replaced.purchasedAt
                && (row.expiresAt ?? row.purchasedAt) > end
            {
                found = min(found ?? row.originalTransactionID, row.originalTransactionID)
            }
        }
        return found
    }
}
