/// The drawing of a customer by the seed. Every trait is drawn, needed or not, so that one share does not move the
/// others.
extension CustomerScript {
    init(drawnBy numbers: inout SeededGenerator, traits: CustomerTraits, pastPeriodsMax: Int) {
        self.init()
        isDrawn = true
        product = Self.product(numbers.unit())
        startOffer = Self.offer(numbers.unit(), traits)
        hasGrace = numbers.chance(traits.grace)
        isFamilyShared = numbers.chance(traits.familyShared)
        ownsLifetime = numbers.chance(traits.lifetime)
        hasRestored = numbers.chance(traits.restored)
        chargeHabit = Self.habit(numbers.unit())
        pastPeriods = numbers.below(pastPeriodsMax + 1)
        if numbers.chance(traits.magazine) { alongside.append(Self.magazine(&numbers)) }
        if numbers.chance(traits.ownBesideShared) { alongside.append(Self.share(of: self)) }
        let coins = numbers.between(0.5, 2)
        if numbers.chance(traits.coins) { coinsEveryMonths = coins }
        let wait = numbers.between(0, Double(pastPeriodsMax) + 3)
        if numbers.chance(traits.secondCustomer) { secondCustomerAfterMonths = wait }
        sendsRenewals = numbers.chance(traits.sendsRenewals)
        hasAccountToken = numbers.chance(traits.accountToken)
        for quirk in ByteQuirk.allCases where numbers.chance(traits.quirk) { quirks.insert(quirk) }
        if numbers.chance(traits.withoutSubscription) { leavesOutSubscriptions() }
        if numbers.chance(traits.legacyReceipt) { becomesOldFashioned() }
        if isFamilyShared { startOffer = nil }
    }

    /// Adds what was not drawn from the beginning: numbers of their own, so that all others stay what they were.
    mutating func drawPurchases(by numbers: inout SeededGenerator, traits: CustomerTraits) {
        buysSeveral = numbers.chance(traits.quantities)
        let months = numbers.between(1, 4)
        if numbers.chance(traits.seasons), !sendsLegacyReceipts { seasonEveryMonths = months }
    }

    /// Adds a term of payments, a group or a seat, again by numbers of their own.
    mutating func drawPlan(by numbers: inout SeededGenerator, traits: CustomerTraits) {
        let (isCommitted, isGroup, isSeat) = (
            numbers.chance(traits.commitments), numbers.chance(traits.groups), numbers.chance(traits.seats)
        )
        let count = 2 + numbers.below(29)
        namesPlan = numbers.chance(traits.namesPlan)
        guard subscribes, !sendsLegacyReceipts, !isFamilyShared, isCommitted || isGroup || isSeat else { return }
        startOffer = nil
        guard !isCommitted else { return (product, plan) = (.yearly, .monthly) }
        seats = count
        isAssigned = !isGroup
    }

    /// Removes the subscriptions and adds coins, so that the customer has at least some purchases.
    private mutating func leavesOutSubscriptions() {
        subscribes = false
        alongside = []
        coinsEveryMonths = coinsEveryMonths ?? 1
    }

    /// Removes everything that receipts of iOS 6 cannot show: they know one subscription and nothing newer.
    private mutating func becomesOldFashioned() {
        guard subscribes else { return }
        sendsLegacyReceipts = true
        hasGrace = false
        hasRestored = false
        isFamilyShared = false
        ownsLifetime = false
        coinsEveryMonths = nil
        secondCustomerAfterMonths = nil
        alongside = []
    }

    private static func magazine(_ numbers: inout SeededGenerator) -> CustomerScript {
        var script = CustomerScript()
        script.isDrawn = true
        script.product = numbers.chance(0.8) ? .magazineMonthly : .magazineYearly
        script.pastPeriods = numbers.below(3)
        script.hasGrace = numbers.chance(0.5)
        return script
    }

    private static func share(of own: CustomerScript) -> CustomerScript {
        var script = CustomerScript()
        script.isDrawn = true
        script.product = .plusMonthly
        script.isFamilyShared = !own.isFamilyShared
        return script
    }

    private static func product(_ draw: Double) -> SubscriptionProduct {
        switch draw {
        case ..<0.57: .monthly
        case ..<0.62: .duoMonthly
        case ..<0.76: .plusMonthly
        case ..<0.9: .weekly
        default: .yearly
        }
    }

    private static func offer(_ draw: Double, _ traits: CustomerTraits) -> PeriodOffer? {
        var rest = draw
        for (offer, share) in [
            (PeriodOffer.freeTrial, traits.freeTrial), (.payAsYouGo, traits.payAsYouGo),
            (.payUpFront, traits.payUpFront), (.offerCode, traits.offerCode),
        ] {
            guard rest >= share else { return offer }
            rest -= share
        }
        return nil
    }

    private static func habit(_ draw: Double) -> ChargeHabit {
        switch draw {
        case ..<0.25: .early
        case ..<0.9: .onTime
        default: .late
        }
    }
}
