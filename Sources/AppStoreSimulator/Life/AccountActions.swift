/// The actions of an account that are about its subscriptions, or about one of its transactions.
extension Account {
    /// Applies an action to the subscription that it names.
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

    /// Returns the number of the subscription that an action names; throws where the account has none such.
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

    /// Gives the purchase or the subscription that an action names another token.
    mutating func setAccountToken(_ action: CustomerAction) throws(ActionRefused) {
        guard let id = action.transactionID, let token = action.accountToken else {
            throw ActionRefused("set_account_token needs a transaction_id and an app_account_token")
        }
        if let place = period(id) {
            lives[place.subscription].setToken(token)
        } else if let number = purchaseNumber(of: id) {
            purchases.purchases[number].order.buyer.token = token
        } else {
            throw ActionRefused("there is no such transaction")
        }
    }
}

extension CustomerAction.Kind {
    /// Whether the customer buys a subscription in the app: the app then passes a token, or none.
    fileprivate var isPurchase: Bool {
        [.upgrade, .downgrade, .crossgrade, .redeemOffer, .resubscribe, .subscribe, .addSeats].contains(self)
    }
}

/// What an action made in an account.
enum ActionOutcome: Sendable {
    case changed
    /// A one-time purchase was made, with this number.
    case bought(Int)
    /// A period of a subscription was charged.
    case booked(subscription: Int, period: Int)
    /// A purchase waits for an approval.
    case pending(PendingPurchase)
}

extension Life {
    /// Sets the token of the renewals and of all periods.
    fileprivate mutating func setToken(_ token: AccountToken) {
        buyer.token = token
        for number in periods.indices { periods[number].buyer.token = token }
    }
}
