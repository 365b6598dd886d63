/// A customer's planned life: the purchases, and the actions in each period.
package struct CustomerScript: Sendable {
    /// When the store charges a renewal.
    package enum ChargeHabit: String, Codable, Sendable, CaseIterable {
        /// Up to a thirtieth of a month before the expiry.
        case early
        /// At the expiry.
        case onTime = "on_time"
        /// Up to a hundredth of a month after the expiry.
        case late
    }

    /// One action in one period.
    package struct Step: Sendable {
        /// The period, counted from 0.
        package var period: Int
        /// The point in the period: 0 is its start and 1 its end. Values beyond 1 count in periods after the end, but a
        /// period counts as at most a month.
        package var at: Double
        package var action: CustomerAction
    }

    /// The first product.
    package var product = SubscriptionProduct.monthly
    /// Whether the customer subscribes; false for one with only one-time purchases.
    package var subscribes = true
    /// The offer the subscription begins with.
    package var startOffer: PeriodOffer?
    /// Whether the app has the grace period switched on for this customer.
    package var hasGrace = false
    /// Whether the subscription is a family member's share of another customer's.
    package var isFamilyShared = false
    /// Whether the subscription is a seat that a group or an organisation gave the customer.
    package var isAssigned = false
    /// How a yearly product is paid.
    package var plan = BillingPlan.upfront
    /// The seats of the customer's group, or of the group that gave a seat; nil for one alone.
    package var seats: Int?
    /// Whether the signed texts name the plan of what is paid at once, too.
    package var namesPlan = false
    /// Whether the customer also owns the lifetime purchase.
    package var ownsLifetime = false
    /// The months between purchases of coins; nil means no purchases.
    package var coinsEveryMonths: Double?
    /// The months between purchases of a season; nil means no purchases.
    package var seasonEveryMonths: Double?
    /// Whether a purchase of coins has 1 to 10 pieces, by the seed.
    package var buysSeveral = false
    /// Whether a customer without a subscription begins without any purchase; others begin with the lifetime one.
    package var beginsEmpty = false
    /// Further subscriptions of the same account.
    package var alongside: [CustomerScript] = []
    /// Whether the device sends a receipt after every renewal, not only after purchases.
    package var sendsRenewals = false
    /// Months after the start at which a second customer of the app restores on this Apple account.
    package var secondCustomerAfterMonths: Double?
    /// Whether the app passed an `app_account_token` with the purchases.
    package var hasAccountToken = false
    /// Whether the device sends the transaction receipt of iOS 6.
    package var sendsLegacyReceipts = false
    /// The odd forms of the responses.
    package var quirks: Set<ByteQuirk> = []
    /// Whether the device restored: its receipt then carries its own transaction ids.
    package var hasRestored = false
    /// When renewals are charged.
    package var chargeHabit = ChargeHabit.onTime
    package var pastPeriods = 0
    package var steps: [Step] = []
    /// Whether the seed decides further actions, period by period.
    package var isDrawn = false

    /// Whether another customer pays.
    var isMember: Bool { isFamilyShared || isAssigned }

    /// Whether the first purchase begins a term of payments.
    var isPaidMonthly: Bool { plan == .monthly && product.hasPlans }

    /// Apple's `inAppOwnershipType`.
    var ownership: String { isAssigned ? "ASSIGNED" : isFamilyShared ? "FAMILY_SHARED" : "PURCHASED" }

    /// Creates a loyal customer of the monthly product.
    package init() {}
}

extension CustomerScript.Step {
    /// Creates a step with an action that has its defaults.
    init(period: Int, at: Double, _ kind: CustomerAction.Kind) {
        self.init(period: period, at: at, action: CustomerAction(kind))
    }
}

/// The form of a script in control calls. Each number has a limit, so that no sum with it overflows.
extension CustomerScript: Decodable {
    enum CodingKeys: String, CodingKey {
        case product, trial, offer, grace, lifetime, restored, charge, steps, drawn, alongside, quirks, subscribes
        case plan, seats, assigned
        case namesPlan = "names_plan"
        case beginsEmpty = "begins_empty"
        case seasonEveryMonths = "season_every_months"
        case buysSeveral = "buys_several"
        case familyShared = "family_shared"
        case pastPeriods = "past_periods"
        case coinsEveryMonths = "coins_every_months"
        case sendsRenewals = "sends_renewals"
        case secondCustomerAfterMonths = "second_customer_after_months"
        case accountToken = "account_token"
        case legacyReceipts = "legacy_receipts"
    }

    private static let monthsMax = 1200
    private static let pastPeriodsMax = 60

    /// Reads a script. Absent fields default to those of a loyal monthly customer.
    package init(from decoder: any Decoder) throws {
        self.init()
        let values = try decoder.container(keyedBy: CodingKeys.self)
        product = try values.decodeIfPresent(SubscriptionProduct.self, forKey: .product) ?? product
        let hasTrial = try values.decodeIfPresent(Bool.self, forKey: .trial) ?? false
        startOffer = try values.decodeIfPresent(PeriodOffer.self, forKey: .offer) ?? (hasTrial ? .freeTrial : nil)
        subscribes = try values.decodeIfPresent(Bool.self, forKey: .subscribes) ?? true
        coinsEveryMonths = try values.numberIfPresent(.coinsEveryMonths, in: 0...Self.monthsMax)
        seasonEveryMonths = try values.numberIfPresent(.seasonEveryMonths, in: 0...Self.monthsMax)
        buysSeveral = try values.decodeIfPresent(Bool.self, forKey: .buysSeveral) ?? false
        beginsEmpty = try values.decodeIfPresent(Bool.self, forKey: .beginsEmpty) ?? false
        alongside = try values.decodeIfPresent([CustomerScript].self, forKey: .alongside) ?? []
        guard alongside.count < AccountIDs.subscriptionsMax else {
            throw DecodingError.dataCorruptedError(
                forKey: .alongside, in: values,
                debugDescription: "an account has at most \(AccountIDs.subscriptionsMax) subscriptions")
        }
        sendsRenewals = try values.decodeIfPresent(Bool.self, forKey: .sendsRenewals) ?? false
        secondCustomerAfterMonths = try values.numberIfPresent(.secondCustomerAfterMonths, in: 0...Self.monthsMax)
        hasAccountToken = try values.decodeIfPresent(Bool.self, forKey: .accountToken) ?? false
        sendsLegacyReceipts = try values.decodeIfPresent(Bool.self, forKey: .legacyReceipts) ?? false
        quirks = try values.decodeIfPresent(Set<ByteQuirk>.self, forKey: .quirks) ?? []
        hasGrace = try values.decodeIfPresent(Bool.self, forKey: .grace) ?? false
        isFamilyShared = try values.decodeIfPresent(Bool.self, forKey: .familyShared) ?? false
        isAssigned = try values.decodeIfPresent(Bool.self, forKey: .assigned) ?? false
        plan = try values.decodeIfPresent(BillingPlan.self, forKey: .plan) ?? .upfront
        seats = try values.numberIfPresent(.seats, in: 1...Seats.countMax)
        namesPlan = try values.decodeIfPresent(Bool.self, forKey: .namesPlan) ?? false
        ownsLifetime = try values.decodeIfPresent(Bool.self, forKey: .lifetime) ?? false
        hasRestored = try values.decodeIfPresent(Bool.self, forKey: .restored) ?? false
        chargeHabit = try values.decodeIfPresent(ChargeHabit.self, forKey: .charge) ?? .onTime
        pastPeriods = try values.numberIfPresent(.pastPeriods, in: 0...Self.pastPeriodsMax) ?? 0
        steps = try values.decodeIfPresent([Step].self, forKey: .steps) ?? []
        isDrawn = try values.decodeIfPresent(Bool.self, forKey: .drawn) ?? false
    }
}

extension CustomerScript.Step: Codable {
    enum CodingKeys: String, CodingKey {
        case period, at
    }

    private static let atMax = 1200

    /// Reads `{"period":0,"at":0.5,"action":"refund"}`; the action's own fields stand in the same object.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            period: try values.number(.period, in: 0...Life.periodsMax), at: try values.number(.at, in: 0...Self.atMax),
            action: try CustomerAction(from: decoder))
    }

    /// Writes the step in the form in which it is read.
    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(period, forKey: .period)
        try values.encode(at, forKey: .at)
        try action.encode(to: encoder)
    }
}

/// Draws a customer by the seed. Every trait is drawn, needed or not, so that one share does not move the others.
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
        var draw = ShareDraw(rest: draw)
        let shares: [(PeriodOffer, Double)] = [
            (.freeTrial, traits.freeTrial), (.payAsYouGo, traits.payAsYouGo), (.payUpFront, traits.payUpFront),
            (.offerCode, traits.offerCode),
        ]
        return shares.first { draw.falls(on: $0.1) }?.0
    }

    private static func habit(_ draw: Double) -> ChargeHabit {
        switch draw {
        case ..<0.25: .early
        case ..<0.9: .onTime
        default: .late
        }
    }
}

/// The actions of a seeded customer in a period, drawn from the customer's own random numbers, one stream per period.
struct DrawnSteps: Sendable {
    typealias Step = CustomerScript.Step

    /// The subscription's own seed.
    let temper: UInt64
    let chances: PeriodChances
    /// Whether a step may delete the account: only the first subscription of an account decides that.
    let mayDeleteAccount: Bool

    /// Returns the actions in a period, drawn from the chances.
    func steps(in period: Int, of script: CustomerScript) -> [Step] {
        guard script.isDrawn else { return [] }
        var numbers = SeededGenerator(seed: temper, stream: 1000 + UInt64(period))
        if script.isMember {
            guard numbers.chance(chances.revocations) else { return [] }
            let kind: CustomerAction.Kind = script.isAssigned ? .revokeSeat : .revokeFamily
            return [Step(period: period, at: numbers.between(0.1, 0.9), kind)]
        }
        if period == 0, script.startOffer == .freeTrial {
            guard numbers.chance(0.4) else { return [] }
            return [Step(period: period, at: numbers.between(0.2, 0.9), .disableRenewal)]
        }
        return paidPeriod(period, of: script, numbers: &numbers)
    }

    /// Returns the comeback of a lapsed customer. Some customers come back after a while, a few of them for an offer.
    func comeback(
        after period: Int, of script: CustomerScript, scale: TimeScale
    ) -> (delay: Int64, action: CustomerAction)? {
        guard script.isDrawn, !script.isMember else { return nil }
        var numbers = SeededGenerator(seed: temper, stream: 2_000_000 + UInt64(period))
        guard numbers.chance(chances.comebacks) else { return nil }
        let delay = max(1000, scale.milliseconds(months: numbers.between(0.3, 3)))
        guard numbers.chance(0.25) else { return (delay, CustomerAction(.resubscribe)) }
        return (delay, redemption(&numbers))
    }

    /// Returns the distance of the charge from the expiry, in milliseconds; negative is before it.
    func chargeOffset(in period: Int, of script: CustomerScript, scale: TimeScale) -> Int64 {
        var numbers = SeededGenerator(seed: temper, stream: 3_000_000 + UInt64(period))
        switch script.chargeHabit {
        case .early: return -Int64(Double(scale.earlyMax) * numbers.between(0.2, 1))
        case .onTime: return 0
        case .late: return Int64(Double(scale.lateMax) * numbers.between(0.2, 1))
        }
    }

    /// Returns the event of a paid period. The numbers that an event draws must not depend on earlier results.
    private func paidPeriod(_ period: Int, of script: CustomerScript, numbers: inout SeededGenerator) -> [Step] {
        var draw = ShareDraw(rest: numbers.unit())
        let point = numbers.between(0.1, 0.8)
        func step(_ kind: CustomerAction.Kind, later: Double = 0) -> Step {
            Step(period: period, at: point + later, kind)
        }
        func seats(_ kind: CustomerAction.Kind, _ count: Int) -> Step {
            var made = step(kind)
            made.action.seats = count
            return made
        }
        if draw.falls(on: chances.cancels) { return [step(.disableRenewal)] }
        if draw.falls(on: chances.wavers) { return [step(.disableRenewal), step(.enableRenewal, later: 0.1)] }
        if draw.falls(on: chances.refunds) { return [refund(of: 0, step(.refund), &numbers)] }
        if draw.falls(on: chances.olderRefunds) { return [refund(of: min(1, period), step(.refund), &numbers)] }
        if draw.falls(on: chances.refundReversals) { return [step(.refund), step(.reverseRefund, later: 0.15)] }
        if draw.falls(on: chances.billingFailures) {
            guard numbers.chance(chances.recoveries) else { return [step(.failBilling)] }
            return [step(.failBilling), Step(period: period, at: 1 + numbers.between(0.05, 1.4), .recover)]
        }
        if draw.falls(on: chances.upgrades) { return [step(.upgrade)] }
        if draw.falls(on: chances.downgrades) { return [step(.downgrade)] }
        if draw.falls(on: chances.crossgrades) { return [step(.crossgrade)] }
        if draw.falls(on: chances.extensions) { return [step(.extend)] }
        if draw.falls(on: chances.priceIncreases) {
            guard numbers.chance(chances.priceConsents) else { return [step(.raisePrice)] }
            return [step(.raisePrice), step(.acceptPrice, later: 0.15)]
        }
        if draw.falls(on: chances.withdrawals) { return [step(.withdrawProduct)] }
        if draw.falls(on: chances.unexplainedEnds) { return [step(.breakOff)] }
        if draw.falls(on: chances.redeemedOffers) {
            return [Step(period: period, at: point, action: redemption(&numbers))]
        }
        if mayDeleteAccount, draw.falls(on: chances.accountDeletions) { return [step(.deleteAccount)] }
        if script.isPaidMonthly, draw.falls(on: chances.planSwitches) { return [step(.switchPlan)] }
        guard script.seats != nil else { return [] }
        if draw.falls(on: chances.seatAdditions) { return [seats(.addSeats, 1 + numbers.below(9))] }
        if draw.falls(on: chances.seatReductions) { return [seats(.reduceSeats, 1 + numbers.below(2))] }
        if draw.falls(on: chances.seatRefunds) { return [seats(.refundSeats, 1 + numbers.below(2))] }
        return []
    }

    /// Returns a refund with what is drawn about it.
    private func refund(of periodsAgo: Int, _ step: Step, _ numbers: inout SeededGenerator) -> Step {
        var step = step
        step.action.keepsRenewal = numbers.chance(0.25)
        step.action.reason = numbers.chance(0.3) ? 1 : 0
        step.action.periodsAgo = periodsAgo
        return step
    }

    /// Returns a comeback, or a redemption, with an offer that is drawn.
    private func redemption(_ numbers: inout SeededGenerator) -> CustomerAction {
        var action = CustomerAction(.redeemOffer)
        action.offer = numbers.chance(0.5) ? .promotional : .offerCode
        return action
    }
}
