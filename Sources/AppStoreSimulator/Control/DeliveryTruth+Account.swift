extension DeliveryTruth {
    /// Returns what must have been delivered until now, in the order the store booked it.
    static func all(of account: Account, in world: World) -> [DeliveryTruth] {
        let purchases = account.purchases.purchases.filter { $0.bookedAt <= account.now }
            .map { DeliveryTruth($0, of: account, in: world) }
        let periods = account.begun.flatMap { life in
            life.periods.map { DeliveryTruth($0, of: life, account, in: world) }
        }
        return (purchases + periods).sorted { ($0.booked, $0.transactionID) < ($1.booked, $1.transactionID) }
    }

    init(_ bought: OneTimePurchase, of account: Account, in world: World) {
        customer = bought.buyer.seat.name(of: account.index)
        product = bought.product.identifier(in: world.bundleID)
        kind = bought.product.kind
        quantity = bought.order.quantity.count
        transactionID = account.ids.purchase(bought.ordinal)
        originalTransactionID = transactionID
        appAccountToken = world.token(of: bought.buyer, account)
        booked = bought.bookedAt.milliseconds
        purchase = bought.at.milliseconds
        ownership = "PURCHASED"
        refunded = bought.refund(asOf: account.now)?.milliseconds
        refunds = bought.refunds.filter { $0.at <= account.now }.map { refund in
            Refund(at: refund.at.milliseconds, reversed: refund.reversedAt?.milliseconds)
        }
        finished = bought.finishedAt.flatMap { $0 <= account.now ? $0.milliseconds : nil }
        isListed = bought.isListed(at: account.now)
    }

    init(_ period: Period, of life: Life, _ account: Account, in world: World) {
        let isShared = life.script.isMember
        customer = period.buyer.seat.name(of: account.index)
        product = period.product.identifier(in: world.bundleID)
        kind = .subscription
        quantity = 1
        transactionID = life.ids.transactionID(of: period.ordinal)
        originalTransactionID = life.ids.originalTransactionID
        webOrderLineItemID = isShared ? nil : life.ids.webOrderLineItemID(of: period.ordinal)
        appAccountToken = isShared ? nil : world.token(of: period.buyer, account)
        booked = period.bookedAt.milliseconds
        purchase = period.purchase.milliseconds
        expires = period.expires.milliseconds
        ownership = life.script.ownership
        replaced = period.cancellations.last { $0.isUpgrade }?.at.milliseconds
        refunded = period.cancellation.flatMap { $0.isUpgrade ? nil : $0.at.milliseconds }
        refunds = period.cancellations.filter { !$0.isUpgrade }.map { refund in
            Refund(at: refund.at.milliseconds, reversed: refund.undoneAt?.milliseconds)
        }
        isListed = period.ordinal >= life.periods.count - AnswerBody.rowsMax
    }
}

extension PendingTruth {
    init(_ pending: PendingPurchase, of account: Account, in world: World) {
        pendingID = pending.id
        customer = pending.order.buyer.seat.name(of: account.index)
        product = pending.order.product.identifier(in: world.bundleID)
        quantity = pending.order.quantity.count
        appAccountToken = world.token(of: pending.order.buyer, account)
        asked = pending.askedAt.milliseconds
    }
}
