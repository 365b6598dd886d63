import Subscriptions

extension SettlementRun {
    /// What a proof may claim: a one-time purchase, or the subscription of a period.
    private enum Claimable {
        case purchase(PurchaseRowKey)
        case subscription(SubscriptionRowKey)
    }

    /// Gives the customers of orders what pays these in the receipts that devices sent with the orders' proofs.
    ///
    /// A proof shows that the upload is about the order, never that the receipt is the sender's. So it claims only the
    /// transaction that pays the order by the one rule of payments, and only if it has no owner, or an uploader
    /// who was given nothing of it.
    mutating func claimByProof() {
        let pool = orderReceipts.pool
        guard !pool.orders.isEmpty else { return }
        let stored = Dictionary(pool.transactions.map { ($0.bought, $0) }) { first, _ in first }
        var things: [PayingTransaction.Bought: (thing: Claimable, transaction: PayingTransaction)] = [:]
        var (bought, subscribed): (Set<PurchaseRowKey>, Set<SubscriptionRowKey>) = ([], [])
        for settlement in batch
        where settlement.evidence != nil && !isRepeated(settlement) && settlement.vouching != .pointer {
            let contents = self.contents(of: settlement)
            bought.formUnion(contents.purchases)
            subscribed.formUnion(contents.subscriptions)
        }
        let provable = orderReceipts.provable
        bought.formUnion(purchases.filter { provable.orders[$0.value.rowID] != nil }.keys)
        for key in bought {
            if let one = transaction(of: key, stored) { things[one.bought] = (.purchase(key), one) }
        }
        for key in subscribed {
            for one in transactions(of: key, stored) { things[one.bought] = (.subscription(key), one) }
        }
        let elsewhere = pool.transactions.filter { !isLoaded($0.bought, bought, subscribed) }
        let payments = matchPayments(elsewhere + things.values.map(\.transaction), of: pool.orders)
        for payment in payments {
            guard let found = things[payment.bought], found.transaction.provedFor.contains(payment.orderID),
                let claim = orderReceipts.customer(of: payment.orderID)
            else { continue }
            give(found.thing, to: claim)
        }
    }

    private func isLoaded(
        _ bought: PayingTransaction.Bought, _ purchaseKeys: Set<PurchaseRowKey>,
        _ subscriptionKeys: Set<SubscriptionRowKey>
    ) -> Bool {
        switch bought {
        case .purchase(let id): purchaseKeys.contains { purchases[$0]?.rowID == id }
        case .period(_, let id): subscriptionKeys.contains { subscriptions[$0]?.rowID == id }
        }
    }

    /// Returns a one-time purchase as payments see it now; nil where it pays nothing any more.
    private func transaction(
        of key: PurchaseRowKey, _ stored: [PayingTransaction.Bought: PayingTransaction]
    ) -> PayingTransaction? {
        guard let draft = purchases[key], let facts = draft.state?.facts, facts.revocation.value.cancelledAt == nil,
            facts.ownership?.value.isPayer ?? true
        else { return nil }
        let terms = facts.terms.value
        let one = PayingTransaction(
            .purchase(draft.rowID), in: key.environment, productID: key.purchase.productID, quantity: terms.quantity,
            purchasedAt: terms.purchasedAt, owner: draft.ownership.buyer?.customer.number)
        return completed(
            one, as: stored[one.bought], isStored: draft.stored != nil,
            isClaimable: orderReceipts.isClaimable(purchase: draft.rowID), token: facts.appAccountToken?.value,
            transactionIDs: facts.transactionIDs, appID: key.appID,
            sentWith: receipts { contents(of: $0).purchases.contains(key) },
            provedFor: orderReceipts.provable.orders[draft.rowID] ?? [])
    }

    /// Returns the periods of a subscription likewise.
    private func transactions(
        of key: SubscriptionRowKey, _ stored: [PayingTransaction.Bought: PayingTransaction]
    ) -> [PayingTransaction] {
        guard let draft = subscriptions[key], let facts = draft.state?.facts else { return [] }
        let ends = Set(facts.periods.map(\.expiresAt))
        let sent = receipts { contents(of: $0).subscriptions.contains(key) }
        return facts.periods.enumerated().compactMap { index, period in
            guard !period.isRefunded, !period.isShared else { return nil }
            // A period that is not stored yet has no id of its own.
            var one = PayingTransaction(
                .period(period.id ?? -Int64(index) - 1, of: draft.rowID), in: key.environment,
                productID: period.productID, quantity: period.terms.value.quantity, purchasedAt: period.purchasedAt,
                owner: draft.ownership.buyer?.customer.number)
            one.isRenewal = ends.contains(period.purchasedAt)
            return completed(
                one, as: stored[one.bought], isStored: period.id != nil,
                isClaimable: orderReceipts.isClaimable(subscription: draft.rowID),
                token: period.details.appAccountToken?.value, transactionIDs: period.transactionIDs, appID: key.appID,
                sentWith: sent)
        }
    }

    private func receipts(where holds: (Settlement) -> Bool) -> [OrderReceipts.Sent] {
        batch.filter(holds).flatMap { orderReceipts.orders(of: $0.claim.receiptID) }
    }

    /// Returns a transaction with what is stored of it, and with what the batch's receipts were sent for; nil where it
    /// pays an order for good.
    private func completed(
        _ transaction: PayingTransaction, as stored: PayingTransaction?, isStored: Bool, isClaimable: Bool,
        token: String?, transactionIDs: Set<TransactionID>, appID: Int32, sentWith sent: [OrderReceipts.Sent],
        provedFor: Set<String> = []
    ) -> PayingTransaction? {
        let pool = orderReceipts.pool
        let isOwnedHere = transaction.owner.map { owner in pool.orders.contains { $0.customer == owner } } ?? false
        // What a customer of the pool owns and the pool leaves out pays another order, or was bought too long ago.
        if isStored, isOwnedHere, stored == nil { return nil }
        var one = transaction
        one.isClaimable = isClaimable
        one.isClaimed = stored?.isClaimed ?? false
        one.isAcknowledged = stored?.isAcknowledged ?? false
        one.isDuplicate = stored?.isDuplicate ?? false
        one.accountToken = token?.lowercased()
        if let order = one.accountToken.flatMap({ pool.tokens[$0] }) {
            one.tokenNames = .order(order)
        } else {
            // An order that is not in the pool is of another product or customer.
            one.tokenNames = orderCustomers.named(by: token, appID: appID).map { named in
                named.isOrdered ? .order("") : .customer(named.claim.customer.number)
            }
        }
        one.provedFor = (stored?.provedFor ?? provedFor).union(sent.filter(\.isProved).map(\.orderID))
        one.sentFor = (stored?.sentFor ?? []).union(sent.filter { !$0.isProved }.map(\.orderID))
        one.namedFor = (stored?.namedFor ?? []).union(
            sent.filter { $0.transactionID.map(transactionIDs.contains) ?? false }.map(\.orderID))
        return one
    }

    private mutating func give(_ thing: Claimable, to claim: OwnershipClaim) {
        switch thing {
        case .purchase(let key):
            purchases[key]?.give(to: claim.customer, named: claim.name, because: .proof)
            purchases[key]?.markChanged()
        case .subscription(let key): subscriptions[key]?.give(to: claim.customer, named: claim.name, because: .proof)
        }
    }
}
