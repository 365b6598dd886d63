/// The result of an accepted action.
enum ActionOutcome: Sendable {
    case changed
    /// A one-time purchase was made, with this number.
    case bought(Int)
    /// A period of a subscription was charged.
    case booked(subscription: Int, period: Int)
    /// A purchase waits for an approval.
    case pending(PendingPurchase)
}

/// The actions about one-time purchases.
extension Account {
    mutating func buy(_ action: CustomerAction) throws(ActionRefused) -> ActionOutcome {
        guard !script.sendsLegacyReceipts else {
            throw ActionRefused("the receipts of iOS 6 show no one-time purchase here")
        }
        let order = PurchaseOrder(
            product: action.item ?? .coins, quantity: action.quantity ?? .one, buyer: action.buyer)
        guard action.isDeferred != true else { return .pending(try purchases.ask(order, of: name, at: now)) }
        return .bought(try purchases.buy(order, at: now))
    }

    mutating func finish(_ action: CustomerAction) throws(ActionRefused) {
        guard let id = action.transactionID else { throw ActionRefused("finish needs a transaction_id") }
        // Apps finish the transactions of subscriptions too; that changes nothing in the answers.
        guard period(id) == nil else { return }
        guard let ordinal = try purchaseNumber(action) else { return }
        purchases.finish(ordinal, at: now)
    }

    /// Returns the number of the purchase that an action names; nil when it names none.
    func purchaseNumber(_ action: CustomerAction) throws(ActionRefused) -> Int? {
        guard let id = action.transactionID else { return nil }
        guard let ordinal = purchaseNumber(of: id) else { throw ActionRefused("there is no such transaction") }
        return ordinal
    }

    /// Returns whether a transaction id is one of the account, restored ones included.
    func hasTransaction(_ id: String) -> Bool { period(id) != nil || purchaseNumber(of: id) != nil }

    /// Returns the number of the purchase with a transaction id, restored ones included.
    func purchaseNumber(of id: String) -> Int? {
        guard let ordinal = ids.purchaseOrdinal(of: id), ordinal < purchases.purchases.count,
            purchases.purchases[ordinal].bookedAt <= now
        else { return nil }
        return ordinal
    }

    /// Returns the subscription and the period with a transaction id, restored ones included.
    func period(_ id: String) -> (subscription: Int, period: Int)? {
        for (number, life) in lives.enumerated() where life.start <= now {
            if let ordinal = life.periodNumber(of: id) { return (number, ordinal) }
        }
        return nil
    }
}

extension Life {
    func periodNumber(of id: String) -> Int? {
        periods.indices.first { ordinal in
            (0...SubscriptionIDs.restoresMax).contains { ids.transactionID(of: ordinal, restore: $0) == id }
        }
    }
}
