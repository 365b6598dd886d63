/// The contents of one verified answer, with Apple's clock and the path of every row.
package struct Evidence: Sendable {
    /// The environment of the purchases.
    package var environment: StoreEnvironment
    /// The app the answer names, if it names one.
    package var bundleID: BundleID?
    /// Apple's clock at the answer: `request_date`, or the database's clock if Apple's was too far ahead of it.
    package var asOf: Instant
    /// When an answer arrived that has no clock of its own (legacy receipts): it speaks for some instant from `asOf` to
    /// this one. Nil for every other answer.
    package var arrivedAt: Instant?
    /// `receipt_creation_date`.
    package var receiptCreatedAt: Instant?
    /// How far Apple's clock was ahead of the database's, if it was too far: `asOf` is then the database's clock.
    package var clockAhead: Delay?
    /// Whether one-time purchases that it does not name are as they were: a history was read on to its end.
    package var confirmsOtherPurchases: Bool
    /// Whether everything that Apple itself stated was read. An unread part may be a renewal that the rest lacks.
    package var isComplete: Bool
    /// The rows of both lists, in the answer's order.
    package var transactions: [TransactionRow] { didSet { index = EvidenceIndex(transactions, renewals) } }
    /// The rows of `pending_renewal_info`, in the answer's order.
    package var renewals: [RenewalRow] { didSet { index = EvidenceIndex(transactions, renewals) } }
    private var index: EvidenceIndex

    /// Creates evidence from its parts.
    package init(
        environment: StoreEnvironment, bundleID: BundleID? = nil, asOf: Instant, receiptCreatedAt: Instant? = nil,
        clockAhead: Delay? = nil, transactions: [TransactionRow] = [], renewals: [RenewalRow] = [],
        isComplete: Bool = true, confirmsOtherPurchases: Bool = false
    ) {
        self.confirmsOtherPurchases = confirmsOtherPurchases
        self.environment = environment
        self.bundleID = bundleID
        self.asOf = asOf
        self.receiptCreatedAt = receiptCreatedAt
        self.clockAhead = clockAhead
        self.isComplete = isComplete
        self.transactions = transactions
        self.renewals = renewals
        index = EvidenceIndex(transactions, renewals)
    }

    /// An oddity of the answer although Apple vouches for the receipt, in one sentence; nil if there is none.
    package var remark: String? {
        clockAhead.map {
            "Apple's clock was \($0.inMinutes) ahead of the database's, so the answer counts from the database's clock."
        }
    }

    /// The subscriptions with rows in the answer, sorted. A row for which the answer gives no expiry is no
    /// subscription.
    package var subscriptions: [OriginalTransactionID] { index.periods.keys.sorted() }

    /// Returns the part of the answer about one subscription.
    ///
    /// An answer that was not understood in full does not show that no renewal came. Its evidence is dated just before
    /// the last end it shows, so that the outage allowance applies as if Apple had not been asked since.
    package func slice(of subscription: OriginalTransactionID) -> SubscriptionEvidence {
        let rows = index.periods[subscription] ?? []
        let lastEnd = rows.lazy.compactMap(\.expiresAt).max()
        let beforeEnd = lastEnd.map { $0 - Delay(milliseconds: 1) } ?? asOf
        return SubscriptionEvidence(
            originalTransactionID: subscription, asOf: isComplete ? asOf : min(asOf, beforeEnd), transactions: rows,
            renewals: index.renewals[subscription] ?? [], replacedBy: index.replacement(of: subscription))
    }

    /// Returns whether the answer shows another subscription of the group in the place of this one: charged when its last
    /// period began or since, and not taken back.
    package func showsSuccessor(of subscription: SubscriptionState) -> Bool {
        guard let group = subscription.facts.groupID else { return false }
        let last = subscription.facts.periods.last { $0.expiresAt == subscription.expiresAt }
        return index.rows(of: group, startingAt: subscription.headStartsAt).contains { row in
            row.originalTransactionID != subscription.facts.originalTransactionID
                && (row.cancelledAt == nil || row.isUpgraded)
                && (row.ownership.map { !$0.isPayer } ?? false) == (last?.isShared ?? false)
        }
    }

    /// The part of the answer about one-time purchases, sorted by original transaction and product.
    package var purchases: [PurchaseEvidence] {
        index.purchases.sorted { $0.key < $1.key }.map {
            PurchaseEvidence(key: $0.key, asOf: asOf, transactions: $0.value)
        }
    }
}
