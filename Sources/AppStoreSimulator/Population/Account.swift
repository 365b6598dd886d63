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

/// What the transaction ids of the account name.
extension Account {
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
