/// The transactions of an account.
extension SignedTransaction {
    private static let wholePercentage: Int64 = 100_000

    /// Returns the transactions that the store has booked, in no particular order.
    static func all(of account: Account, in world: World) -> [SignedTransaction] {
        let purchases = account.purchases.purchases.filter { $0.bookedAt <= account.now }
            .map { SignedTransaction($0, of: account, in: world) }
        return account.begun.flatMap { life in
            life.periods.map { SignedTransaction($0, of: life, account, in: world) }
        } + purchases
    }

    /// Returns the transaction with an id, a restored one included; nil when there is none.
    static func one(_ id: String, of account: Account, in world: World) -> SignedTransaction? {
        var found: SignedTransaction
        if let place = account.period(id) {
            let life = account.lives[place.subscription]
            found = SignedTransaction(life.periods[place.period], of: life, account, in: world)
        } else if let number = account.purchaseNumber(of: id) {
            found = SignedTransaction(account.purchases.purchases[number], of: account, in: world)
        } else {
            return nil
        }
        found.id = id
        return found
    }

    /// Returns the transaction as a device has it that restored; nil for a consumable, which does not come back.
    func restored(_ restore: Int, of account: Account) -> SignedTransaction? {
        guard restore > 0 else { return self }
        var restored = self
        if let place = account.period(id) {
            restored.id = account.lives[place.subscription].ids.transactionID(of: place.period, restore: restore)
        } else if kind == .nonConsumable, let number = account.purchaseNumber(of: id) {
            restored.id = account.ids.purchase(number, restore: restore)
        } else {
            return nil
        }
        return restored
    }

    init(_ bought: OneTimePurchase, of account: Account, in world: World) {
        let now = account.now
        let storefront = world.storefront(of: account)
        self.init(
            id: account.ids.purchase(bought.ordinal), originalID: account.ids.purchase(bought.ordinal),
            productID: bought.product.identifier(in: world.bundleID), purchase: bought.at, originalPurchase: bought.at,
            kind: bought.product.kind, accountToken: world.token(of: bought.buyer, account),
            price: storefront.price(of: bought.product) * Int64(bought.order.quantity.count), storefront: storefront,
            appTransactionID: account.ids.appTransaction, environment: account.environment,
            modifiedAt: bought.modifiedAt(asOf: now))
        quantity = bought.order.quantity
        isFinished = bought.finishedAt.map { $0 <= now } ?? false
        revocation = bought.refund(asOf: now).map {
            Revocation(at: $0, reason: 0, type: "REFUND_FULL", percentage: Self.wholePercentage)
        }
    }

    init(_ period: Period, of life: Life, _ account: Account, in world: World) {
        let isShared = life.script.isMember
        let storefront = world.storefront(of: account)
        self.init(
            id: life.ids.transactionID(of: period.ordinal), originalID: life.ids.originalTransactionID,
            productID: period.product.identifier(in: world.bundleID), purchase: period.purchase,
            originalPurchase: life.originalPurchase, kind: .subscription,
            accountToken: isShared ? nil : world.token(of: period.buyer, account),
            price: storefront.price(of: period),
            storefront: storefront, appTransactionID: account.ids.appTransaction, environment: life.environment,
            modifiedAt: period.modifiedAt)
        webOrderLineItemID = isShared ? nil : life.ids.webOrderLineItemID(of: period.ordinal)
        groupID = period.product.groupID
        expires = period.expires
        ownership = life.script.ownership
        payment = period.payment
        plan = period.payment != nil || account.script.namesPlan ? period.plan : nil
        termPrice = price * Int64(Payment.total)
        seats = period.seats
        seatTiers = period.seats.map { SeatTiers($0.count, price: price) }
        price = seatTiers?.average ?? price
        isRenewal = period.kind.isRenewal
        offer = period.offer.map { OfferClaims(offer: $0, id: period.offerID, product: period.product) }
        guard let cancellation = period.cancellation else { return }
        isUpgraded = cancellation.isUpgrade
        // As in verifyReceipt, the sandbox gives an upgraded transaction no date.
        if !(cancellation.isUpgrade && life.environment == .sandbox) {
            revocation = takenBack(cancellation, of: period)
        }
    }

    private func takenBack(_ cancellation: Period.Cancellation, of period: Period) -> Revocation {
        func made(_ type: String, _ percentage: Int64?) -> Revocation {
            Revocation(at: cancellation.at, reason: cancellation.reason, type: type, percentage: percentage)
        }
        if isShared { return made(ownership == "ASSIGNED" ? "ASSIGNMENT_REVOKE" : "FAMILY_REVOKE", nil) }
        guard cancellation.isUpgrade else { return made("REFUND_FULL", Self.wholePercentage) }
        let length = max(1, period.expires.milliseconds - period.purchase.milliseconds)
        let left = min(length, max(0, period.expires.milliseconds - cancellation.at.milliseconds))
        return made("REFUND_PRORATED", Self.wholePercentage * left / length)
    }
}

extension World {
    func storefront(of account: Account) -> Storefront { Storefront(of: account.index, seed: population.seed) }
}

extension LifeEventKind {
    /// Whether the store charged by itself; the customer bought in every other case.
    fileprivate var isRenewal: Bool {
        switch self {
        case .renewed, .converted, .recovered, .changedAtRenewal: true
        case .purchased, .trialStarted, .offerStarted, .lapsed, .refunded, .refundReversed, .renewalDisabled,
            .renewalEnabled, .billingFailed, .graceStarted, .graceEnded, .upgraded, .crossgraded,
            .crossgradeScheduled, .downgradeScheduled, .changeWithdrawn, .offerRedeemed, .priceIncreasePending,
            .priceIncreaseAccepted, .resubscribed, .revoked, .extended, .accountDeleted,
            .planSwitchScheduled, .seatsAdded, .seatsReduced, .seatsRefunded:
            false
        }
    }
}
