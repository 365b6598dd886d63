/// The actions about subscriptions.
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
        switch action.offer {
        case .promotional: throw ActionRefused("a promotional offer is for present and former subscribers")
        case .freeTrial, .payAsYouGo, .payUpFront, .offerCode, nil: break
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
        switch self {
        case .upgrade, .downgrade, .crossgrade, .redeemOffer, .resubscribe, .subscribe, .addSeats: true
        case .refund, .reverseRefund, .disableRenewal, .enableRenewal, .failBilling, .recover, .raisePrice,
            .acceptPrice, .withdrawProduct, .breakOff, .deleteAccount, .revokeFamily, .revokeSeat, .claimSeat,
            .switchPlan, .reduceSeats, .refundSeats, .extend, .buy, .approve, .decline, .finish, .refundPurchase,
            .reversePurchaseRefund, .requestRefund, .declineRefund,
            .setAccountToken:
            false
        }
    }
}
