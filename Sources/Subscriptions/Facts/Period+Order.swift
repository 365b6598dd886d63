extension Period {
    /// Canonical order: by start, then end, then identifier. Total for the periods of one subscription.
    static func precedes(_ left: Period, _ right: Period) -> Bool {
        if left.purchasedAt != right.purchasedAt { return left.purchasedAt < right.purchasedAt }
        if left.expiresAt != right.expiresAt { return left.expiresAt < right.expiresAt }
        if left.webOrderLineItemID != right.webOrderLineItemID {
            guard let id = left.webOrderLineItemID else { return true }
            return right.webOrderLineItemID.map { id < $0 } ?? false
        }
        if left.productID != right.productID { return left.productID < right.productID }
        return left.transactionIDs.sorted().lexicographicallyPrecedes(right.transactionIDs.sorted())
    }

    /// Whether it ends later, or starts later with the same end.
    func endsAfter(_ other: Period) -> Bool {
        (expiresAt, purchasedAt) > (other.expiresAt, other.purchasedAt)
    }

    /// The period whose end renewal information speaks of: the live one that ends last, unless a refunded one follows
    /// it; without either, the replaced one that ends last.
    static func indexOfLast(in periods: [Period]) -> Int? {
        var live: Int?
        var refunded: Int?
        var replaced: Int?
        for (index, period) in periods.enumerated() {
            if period.isUpgraded {
                replaced = later(replaced, index, in: periods)
            } else if period.isRefunded {
                refunded = later(refunded, index, in: periods)
            } else {
                live = later(live, index, in: periods)
            }
        }
        guard let head = live else { return refunded ?? replaced }
        guard let candidate = refunded else { return head }
        let follows =
            periods[candidate].expiresAt > periods[head].expiresAt
            && periods[candidate].purchasedAt >= periods[head].purchasedAt
        return follows ? candidate : head
    }

    private static func later(_ known: Int?, _ index: Int, in periods: [Period]) -> Int {
        guard let known else { return index }
        return periods[known].endsAfter(periods[index]) ? known : index
    }
}

extension SubscriptionEvidence {
    /// The renewal row that speaks of a product: the one for it, else the one that renews to it, else one that will
    /// renew, else the first. Never by its place alone.
    func renewal(for product: ProductID) -> RenewalRow? {
        renewals.first { $0.renewal.productID == product }
            ?? renewals.first { $0.renewal.renewsToProductID == product }
            ?? renewals.first { $0.renewal.willRenew == true }
            ?? renewals.first
    }
}
