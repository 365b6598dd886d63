/// The manual actions. An action that makes no sense is refused and changes nothing.
extension PurchaseHistory {
    /// Makes a purchase and returns its number. It stays listed until it is finished, and is refunded only on request.
    mutating func buy(_ order: PurchaseOrder, at moment: StoreTime) throws(ActionRefused) -> Int {
        try admit(order, at: moment)
        purchases.append(OneTimePurchase(ordinal: purchases.count, order: order, bookedAt: moment))
        return purchases.count - 1
    }

    /// Notes a purchase that waits for an approval.
    mutating func ask(
        _ order: PurchaseOrder, of account: String, at moment: StoreTime
    ) throws(ActionRefused) -> PendingPurchase {
        try admit(order, at: moment)
        askedCount += 1
        let asked = PendingPurchase(id: "\(account)-\(askedCount)", askedAt: moment, order: order)
        pending.append(asked)
        return asked
    }

    /// Makes a purchase that waited, and returns its number.
    mutating func approve(_ id: String?, at moment: StoreTime) throws(ActionRefused) -> Int {
        let place = try place(ofPending: id)
        let bought = try buy(pending[place].order, at: moment)
        pending.remove(at: place)
        return bought
    }

    /// Forgets a purchase that waited.
    mutating func decline(_ id: String?) throws(ActionRefused) {
        pending.remove(at: try place(ofPending: id))
    }

    /// Refunds a purchase, or the newest one that is listed and was never refunded.
    mutating func refund(_ ordinal: Int?, at moment: StoreTime) throws(ActionRefused) {
        let newest = purchases.lastIndex { purchase in
            purchase.isListed(at: moment) && purchase.refunds.allSatisfy { $0.reversedAt != nil }
        }
        guard let index = ordinal ?? newest else { throw ActionRefused("there is no purchase to refund") }
        guard purchases[index].refund(asOf: moment) == nil else { throw ActionRefused("it is refunded already") }
        purchases[index].refunds.removeAll { $0.at > moment }
        purchases[index].refunds.append(OneTimePurchase.Refund(at: moment))
    }

    /// Reverses the refund of a purchase, or of the newest refunded one.
    mutating func reverseRefund(_ ordinal: Int?, at moment: StoreTime) throws(ActionRefused) {
        let newest = purchases.lastIndex { $0.refund(asOf: moment) != nil }
        guard let index = ordinal ?? newest,
            let refund = purchases[index].refunds.lastIndex(where: { $0.isInEffect(at: moment) })
        else { throw ActionRefused("there is no refund to reverse") }
        purchases[index].refunds[refund].reversedAt = moment
    }

    /// Finishes a purchase. As with StoreKit, the second time changes nothing.
    mutating func finish(_ ordinal: Int, at moment: StoreTime) {
        purchases[ordinal].finishedAt = min(purchases[ordinal].finishedAt ?? moment, moment)
    }

    private func admit(_ order: PurchaseOrder, at moment: StoreTime) throws(ActionRefused) {
        guard purchases.count < Self.purchasesMax else { throw ActionRefused("the account has its most purchases") }
        guard order.product.kind == .nonConsumable else { return }
        guard order.quantity == .one else { throw ActionRefused("a non-consumable is bought once") }
        let isOwned = purchases.contains { $0.product == order.product && $0.refund(asOf: moment) == nil }
        guard !isOwned else { throw ActionRefused("the account owns it already") }
    }

    private func place(ofPending id: String?) throws(ActionRefused) -> Int {
        guard let place = pending.firstIndex(where: { $0.id == id }) else {
            throw ActionRefused("there is no such pending purchase")
        }
        return place
    }
}
