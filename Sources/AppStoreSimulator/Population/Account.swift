/// One Apple account: its subscriptions, its one-time purchases, and the customers of the app who use it.
struct Account: Sendable {
    /// The number of the account; every id and receipt contains it.
    let index: Int
    let environment: StoreEnvironment
    /// The script of the first subscription, which also gives the traits of the whole account.
    let script: CustomerScript
    /// The first purchase.
    let start: StoreTime
    /// The creation of the first receipt that the customer's device sends.
    let firstReceiptCreation: StoreTime
    /// When the second customer restores, if there is one.
    let secondCustomerAt: StoreTime?
    /// All planned subscriptions; some may not have begun.
    var lives: [Life]
    var purchases: PurchaseHistory
    /// What the customers asked Apple to refund.
    var refundRequests: [RefundRequest] = []
    private(set) var now: StoreTime
    private(set) var deletedAt: StoreTime?

    var name: String { CustomerName.first(index) }
    var ids: AccountIDs { AccountIDs(index: index, environment: environment) }
    /// The subscriptions that have begun.
    var begun: [Life] { lives.filter { $0.start <= now } }
    var bought: [OneTimePurchase] { purchases.purchases.filter { $0.bookedAt <= now } }
    var listedPurchases: [OneTimePurchase] { purchases.purchases.filter { $0.isListed(at: now) } }
    var isDeleted: Bool { deletedAt != nil }

    /// Advances to an instant. The resulting state depends on the instant and on the earlier manual actions.
    mutating func advance(to moment: StoreTime) {
        for index in lives.indices {
            lives[index].advance(to: min(moment, deletedAt ?? moment))
            deletedAt = deletedAt ?? lives[index].accountDeletedAt
        }
        purchases.advance(to: min(moment, deletedAt ?? moment))
        now = max(now, moment)
    }

    /// Whether a second customer of the app uses the account now.
    var hasSecondCustomer: Bool { secondCustomerAt.map { $0 <= now } ?? false }

    /// Applies an action now; a refused action changes nothing.
    mutating func apply(_ action: CustomerAction) throws(ActionRefused) -> ActionOutcome {
        guard !isDeleted else { throw ActionRefused("the account is deleted") }
        guard action.seat == .first || hasSecondCustomer else {
            throw ActionRefused("the account has no second customer")
        }
        switch action.kind {
        case .buy: return try buy(action)
        case .approve: return .bought(try purchases.approve(action.pendingID, at: now))
        case .decline: try purchases.decline(action.pendingID)
        case .finish: try finish(action)
        case .refundPurchase: try purchases.refund(try purchaseNumber(action), at: now)
        case .reversePurchaseRefund: try purchases.reverseRefund(try purchaseNumber(action), at: now)
        case .deleteAccount:
            deletedAt = now
            if !lives.isEmpty { try lives[0].apply(action) }
        case .subscribe, .claimSeat: return try subscribe(action)
        case .requestRefund: try requestRefund(action)
        case .declineRefund: try declineRefund(action)
        case .setAccountToken: try setAccountToken(action)
        case .refund, .reverseRefund, .disableRenewal, .enableRenewal, .failBilling, .recover, .upgrade, .downgrade,
            .crossgrade, .raisePrice, .acceptPrice, .withdrawProduct, .breakOff, .redeemOffer, .resubscribe,
            .revokeFamily, .revokeSeat, .switchPlan, .addSeats, .reduceSeats, .refundSeats, .extend:
            return try applyToSubscription(action)
        }
        return .changed
    }

    /// The first later instant at which a response about this account may change; nil when it never does.
    var nextChange: StoreTime? {
        guard !isDeleted else { return nil }
        let turns = lives.compactMap { $0.start > now ? $0.start : $0.nextTurn?.at }
        return (turns + [purchases.nextChange(after: now)].compactMap { $0 }).min()
    }

    /// When the store last wrote a new receipt for this account.
    var newestReceiptCreation: StoreTime {
        let booked = begun.map(\.head.bookedAt)
        let bought = purchases.purchases.last { $0.bookedAt <= now }.map { [$0.bookedAt] } ?? []
        return (booked + bought).reduce(firstReceiptCreation) { max($0, $1) }
    }
}

extension Account {
    mutating func applyToSubscription(_ action: CustomerAction) throws(ActionRefused) -> ActionOutcome {
        let number = try subscriptionNumber(action)
        var life = lives[number]
        let before = life.periods.count
        if action.kind.isPurchase { life.buyer = action.buyer }
        try life.apply(action)
        lives[number] = life
        guard life.periods.count > before else { return .changed }
        return .booked(subscription: number, period: life.periods.count - 1)
    }

    /// Begins a subscription of a group in which the account has none of its own.
    mutating func subscribe(_ action: CustomerAction) throws(ActionRefused) -> ActionOutcome {
        let product = action.product ?? .monthly
        let isSeat = action.kind == .claimSeat
        let isTaken = lives.contains { life in
            life.script.product.groupID == product.groupID
                && (isSeat ? life.script.isAssigned && life.phase.isLive : !life.script.isMember)
        }
        guard action.seats.map({ (1...Seats.countMax).contains($0) }) ?? true else {
            throw ActionRefused("a group has 1 to \(Seats.countMax) seats")
        }
        guard !isTaken else { throw ActionRefused("the account has a subscription of this group: resubscribe") }
        guard lives.count < AccountIDs.subscriptionsMax else {
            throw ActionRefused("the account has its most subscriptions")
        }
        guard action.offer != .promotional else {
            throw ActionRefused("a promotional offer is for present and former subscribers")
        }
        var wanted = CustomerScript()
        wanted.product = product
        wanted.startOffer = isSeat ? nil : action.offer
        wanted.plan = action.plan ?? .upfront
        wanted.isAssigned = isSeat
        wanted.seats = action.seats ?? (isSeat ? 2 : nil)
        wanted.hasGrace = script.hasGrace
        wanted.chargeHabit = script.chargeHabit
        let drawn = DrawnSteps(
            temper: SeededGenerator.mixed(purchases.temper &+ UInt64(lives.count)), chances: PeriodChances(),
            mayDeleteAccount: false)
        lives.append(
            Life(
                script: wanted, start: now, scale: purchases.scale, environment: environment, drawn: drawn,
                ids: ids.subscription(lives.count), buyer: action.buyer, bookedAt: now))
        return .booked(subscription: lives.count - 1, period: 0)
    }

    func subscriptionNumber(_ action: CustomerAction) throws(ActionRefused) -> Int {
        if let id = action.transactionID {
            guard let found = period(id) else { throw ActionRefused("there is no such transaction") }
            return found.subscription
        }
        let number = action.subscription ?? 0
        guard lives.indices.contains(number), lives[number].start <= now else {
            throw ActionRefused("there is no such subscription")
        }
        return number
    }
}

extension CustomerAction.Kind {
    /// Whether the customer buys a subscription in the app: the app then passes a token, or none.
    fileprivate var isPurchase: Bool {
        [.upgrade, .downgrade, .crossgrade, .redeemOffer, .resubscribe, .subscribe, .addSeats].contains(self)
    }
}

enum ActionOutcome: Sendable {
    case changed
    /// A one-time purchase was made, with this number.
    case bought(Int)
    /// A period of a subscription was charged.
    case booked(subscription: Int, period: Int)
    /// A purchase waits for an approval.
    case pending(PendingPurchase)
}

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
        if let ordinal = try purchaseNumber(action) { purchases.finish(ordinal, at: now) }
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
