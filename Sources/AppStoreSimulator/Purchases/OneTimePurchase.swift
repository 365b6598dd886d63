/// What is to be bought: a one-time product, how many pieces of it, and for whom.
struct PurchaseOrder: Sendable {
    let product: OneTimeProduct
    var quantity = PurchaseQuantity.one
    var buyer = Buyer()
}

/// A purchase that waits for the approval of the family organiser.
struct PendingPurchase: Sendable {
    let id: String
    let askedAt: StoreTime
    let order: PurchaseOrder
}

/// One purchase of a one-time product. The later events of a drawn one are decided at the purchase.
struct OneTimePurchase: Sendable {
    struct Refund: Sendable {
        let at: StoreTime
        var reversedAt: StoreTime?

        func isInEffect(at moment: StoreTime) -> Bool {
            guard at <= moment else { return false }
            return reversedAt.map { $0 > moment } ?? true
        }
    }

    /// The number of the purchase in its account, from 0; the row's id derives from it.
    let ordinal: Int
    var order: PurchaseOrder
    /// When the store first showed it.
    let bookedAt: StoreTime
    var refunds: [Refund] = []
    /// When the app finished it: Apple does not list a consumable from then on.
    var finishedAt: StoreTime?

    var product: OneTimeProduct { order.product }
    var buyer: Buyer { order.buyer }

    /// Apple's purchase date.
    var at: StoreTime { bookedAt.wholeSecond }

    func isListed(at moment: StoreTime) -> Bool {
        guard bookedAt <= moment else { return false }
        switch product.kind {
        case .consumable: return finishedAt.map { $0 > moment } ?? true
        case .nonConsumable, .nonRenewing, .subscription: return true
        }
    }

    func refund(asOf moment: StoreTime) -> StoreTime? { refunds.last { $0.isInEffect(at: moment) }?.at }

    /// Returns when what Apple signs about it last changed until an instant.
    func modifiedAt(asOf moment: StoreTime) -> StoreTime {
        let changes = refunds.flatMap { [$0.at, $0.reversedAt ?? $0.at] }.filter { $0 <= moment }
        return changes.reduce(bookedAt) { max($0, $1) }
    }

    /// Returns the first later instant at which Apple's response about it changes.
    func nextChange(after moment: StoreTime) -> StoreTime? {
        (refunds.map(\.at) + [finishedAt].compactMap { $0 }).filter { $0 > moment }.min()
    }
}
