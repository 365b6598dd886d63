import Subscriptions

extension SettlementRun {
    /// What a proof may claim: a one-time purchase, or the subscription of a period.
    private enum Claimable {
        case purchase(PurchaseRowKey)
        case subscription(SubscriptionRowKey)
    }

    /// Gives the customer of an order one transaction of the receipt that a device sent with the order's proof.
    ///
    /// The proof shows that the upload is about the order, never that the receipt is the sender's. So it claims only
    /// what was bought of the ordered product since the order, pays no order and carries no order's token, and has no
    /// owner, or one who merely uploaded it and got nothing. Where the customer owns such a transaction, it claims none.
    mutating func claimByProof(in settlement: Settlement) {
        for order in orderReceipts.orders(of: settlement.claim.receiptID) where order.mayClaim {
            let found = candidates(for: order, in: settlement)
            guard !found.contains(where: { owner(of: $0.thing) == order.customer.customer }) else { continue }
            let claimed = found.filter { isClaimable($0.thing) }.min { $0.boughtAt < $1.boughtAt }
            guard let claimed else { continue }
            give(claimed.thing, to: order.customer)
        }
    }

    /// Returns what was bought of the ordered product since the order, and carries no order's token.
    private func candidates(
        for order: OrderReceipts.Sent, in settlement: Settlement
    ) -> [(thing: Claimable, boughtAt: Instant)] {
        let bought = settlement.purchases.map(\.key).compactMap { key -> (Claimable, Instant)? in
            guard let facts = purchases[key]?.state?.facts, facts.revocation.value.cancelledAt == nil,
                order.matches(key.purchase.productID, boughtAt: facts.terms.value.purchasedAt),
                orderCustomers.claim(of: facts.appAccountToken?.value, appID: key.appID) == nil
            else { return nil }
            return (.purchase(key), facts.terms.value.purchasedAt)
        }
        return bought
            + settlement.subscriptionKeys.compactMap { key in
                boughtAt(key, for: order).map { (.subscription(key), $0) }
            }
    }

    /// Returns when the period of a subscription was bought that matches an order. A renewal matches none.
    private func boughtAt(_ key: SubscriptionRowKey, for order: OrderReceipts.Sent) -> Instant? {
        let periods = subscriptions[key]?.state?.facts.periods ?? []
        let ends = Set(periods.map(\.expiresAt))
        return periods.filter { period in
            !period.isRefunded && !ends.contains(period.purchasedAt)
                && order.matches(period.productID, boughtAt: period.purchasedAt)
                && orderCustomers.claim(of: period.details.appAccountToken?.value, appID: key.appID) == nil
        }.map(\.purchasedAt).min()
    }

    private func owner(of thing: Claimable) -> CustomerID? {
        switch thing {
        case .purchase(let key): purchases[key]?.ownership.current?.customer
        case .subscription(let key): subscriptions[key]?.ownership.current?.customer
        }
    }

    private func isClaimable(_ thing: Claimable) -> Bool {
        switch thing {
        case .purchase(let key): purchases[key].map { orderReceipts.isClaimable(purchase: $0.rowID) } ?? false
        case .subscription(let key):
            subscriptions[key].map { orderReceipts.isClaimable(subscription: $0.rowID) } ?? false
        }
    }

    private mutating func give(_ thing: Claimable, to claim: OwnershipClaim) {
        switch thing {
        case .purchase(let key): purchases[key]?.give(to: claim.customer, named: claim.name, because: .proof)
        case .subscription(let key): subscriptions[key]?.give(to: claim.customer, named: claim.name, because: .proof)
        }
    }
}
