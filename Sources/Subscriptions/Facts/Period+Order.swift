extension Period {
    /// Orders periods canonically: by start, then end, then identifier. Total for the periods of one subscription.
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

    /// Returns whether the period ends later, or starts later with the same end.
    func endsAfter(_ other: Period) -> Bool {
        (expiresAt, purchasedAt) > (other.expiresAt, other.purchasedAt)
    }

    /// Returns the index of the live period that ends last.
    static func indexOfHead(in periods: [Period]) -> Int? {
        periods.indices.reduce(nil) { known, index in
            periods[index].isUpgraded || periods[index].isRefunded ? known : later(known, index, in: periods)
        }
    }

    /// Returns the index of the period whose end the renewal information describes: the live period that ends last,
    /// unless a refunded one follows it or one that waits for its replacement starts after it. Without any of these, it
    /// is the replaced period that starts last.
    ///
    /// The decision table examines the same period once every known period has begun.
    static func indexOfLast(in periods: [Period]) -> Int? {
        let head = indexOfHead(in: periods)
        let replaced = periods.lastIndex(where: \.isUpgraded)
        let waiting = replaced.flatMap { Replacement.instants(in: periods)[$0] == nil ? $0 : nil }
        func waits(after index: Int?) -> Bool {
            guard let waiting, let index else { return waiting != nil }
            return periods[waiting].purchasedAt > periods[index].purchasedAt
        }
        if let refunded = periods.lastIndex(where: \.isRefunded), periods[refunded].follows(head.map { periods[$0] }) {
            return waits(after: refunded) ? waiting : refunded
        }
        return waits(after: head) ? waiting : head ?? replaced
    }

    /// Returns whether the period comes after every live one, so that its refund decides.
    private func follows(_ head: Period?) -> Bool {
        guard let head else { return true }
        return expiresAt > head.expiresAt && purchasedAt >= head.purchasedAt
    }

    private static func later(_ known: Int?, _ index: Int, in periods: [Period]) -> Int {
        guard let known else { return index }
        return periods[known].endsAfter(periods[index]) ? known : index
    }
}

extension SubscriptionEvidence {
    /// Returns the renewal row about a product: the row of that product, else the row that renews to it, else a row
    /// that will renew, else the first row. The position alone never decides while another criterion fits.
    func renewal(for product: ProductID) -> RenewalRow? {
        renewals.first { $0.renewal.productID == product }
            ?? renewals.first { $0.renewal.renewsToProductID == product }
            ?? renewals.first { $0.renewal.willRenew == true }
            ?? renewals.first
    }
}
