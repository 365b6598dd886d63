/// One subscription's life, a state machine that moves from turn to turn. Its state at an instant depends only on its
/// script, its seed and the actions applied so far, never on how often it was read.
struct Life: Sendable {
    enum Phase: Sendable, Equatable {
        case subscribed
        case retrying(graceUntil: StoreTime?, graceIsOver: Bool, until: StoreTime)
        /// The subscription ended, with Apple's expiration intent; a revoked family share has none.
        case ended(intent: Int?, graceUntil: StoreTime?)

        /// Whether it runs, or may be charged again by itself.
        var isLive: Bool { if case .ended = self { false } else { true } }
    }

    /// The most periods that have ids; after them the life lapses as the sandbox does.
    static let periodsMax = 90_000
    /// The number of renewals of a tester's subscription.
    static let sandboxRenewalsMax = 12

    let script: CustomerScript
    let scale: TimeScale
    let environment: StoreEnvironment
    let drawn: DrawnSteps
    let ids: SubscriptionIDs
    /// The first purchase.
    let start: StoreTime

    private(set) var now: StoreTime
    var periods: [Period] = []
    var lifeEvents: [LifeEvent] = []
    var phase = Phase.subscribed
    var renewalIsOn = true
    var cardFails = false
    /// Why the next renewal will fail although renewal is on: 4 not for sale, 5 unexplained.
    var obstacle: Int?
    var priceConsent: PriceConsent?
    /// The number of price increases that the customer agreed to and has paid.
    var priceIncreases = 0
    var offerBalance: OfferBalance?
    var nextProduct: SubscriptionProduct
    /// The plan of what follows, where the product has plans.
    var nextPlan: BillingPlan
    /// The seats of the next renewal of a group.
    var nextSeats: Int?
    var renewals = 0
    var accountDeletedAt: StoreTime?
    private var steps: [(at: StoreTime, action: CustomerAction)] = []
    /// The customer who made the newest purchase, which the renewals continue.
    var buyer: Buyer
    /// Apple's `original_purchase_date`: a little after the first purchase, as observed.
    var originalPurchase: StoreTime { start + 2000 }
    /// The newest period. There is always one, because a life begins with a purchase.
    var head: Period { periods[periods.count - 1] }

    /// Begins with the first purchase, on a whole second. A purchase made on request shows from `bookedAt` on.
    init(
        script: CustomerScript, start: StoreTime, scale: TimeScale, environment: StoreEnvironment, drawn: DrawnSteps,
        ids: SubscriptionIDs, buyer: Buyer = Buyer(), bookedAt: StoreTime? = nil
    ) {
        self.script = script
        self.scale = scale
        self.environment = environment
        self.drawn = drawn
        self.ids = ids
        self.start = start.wholeSecond
        self.now = bookedAt ?? self.start
        self.buyer = buyer
        self.nextProduct = script.product
        self.nextPlan = script.plan
        self.nextSeats = script.seats
        // Whether an offer counts as a payment of the term is not known.
        let offer = script.isPaidMonthly ? nil : script.startOffer
        offerBalance = offer.map { OfferBalance($0) }
        let kind: LifeEventKind = offer == .freeTrial ? .trialStarted : .offerStarted
        book(script.product, purchase: self.start, as: offer == nil ? .purchased : kind)
    }

    /// Advances to an instant. An earlier instant changes nothing.
    mutating func advance(to moment: StoreTime) {
        while let next = nextTurn, next.at <= moment {
            now = next.at
            perform(next.turn)
        }
        now = max(now, moment)
    }

    /// Adds a period, at the price of an offer while one lasts, and all of the script's steps in it.
    mutating func book(_ product: SubscriptionProduct, purchase: StoreTime, as kind: LifeEventKind) {
        let payment = payment(of: product, from: purchase)
        let isWithinTerm = payment.map { $0.number > 1 } ?? false
        let redeemed = payment == nil ? takeOffer() : nil
        let length = payment == nil ? scale.length(of: product, with: redeemed?.offer) : scale.payment
        if priceConsent == .given, !isWithinTerm { priceIncreases += 1 }
        let period = Period(
            ordinal: periods.count, kind: kind, product: product, bookedAt: now, purchase: purchase,
            redeemed: redeemed, priceIncreases: priceIncreases, buyer: buyer, payment: payment,
            seats: nextSeats.map { Seats(count: $0, isAddition: false) },
            expiries: [(knownAt: now, expires: purchase + length)])
        periods.append(period)
        phase = .subscribed
        // A term keeps its price, and what was chosen for the time after it.
        if !isWithinTerm { (nextProduct, priceConsent) = (product, nil) }
        record(kind, period: period.ordinal)
        schedule(script.steps.filter { $0.period == period.ordinal }, in: period)
        schedule(drawn.steps(in: period.ordinal, of: script), in: period)
    }

    /// Ends the subscription. Some drawn customers come back after a while.
    mutating func end(intent: Int?, graceUntil: StoreTime? = nil) {
        renewalIsOn = false
        phase = .ended(intent: intent, graceUntil: graceUntil)
        guard let back = drawn.comeback(after: head.ordinal, of: script, scale: scale) else { return }
        insert(back.action, at: now + back.delay)
    }

    /// Adds an event of the life.
    mutating func record(_ kind: LifeEventKind, period: Int? = nil, intent: Int? = nil) {
        lifeEvents.append(LifeEvent(at: now, kind: kind, ordinal: period, expirationIntent: intent))
    }

    /// Takes the offer for one period, if there is one left.
    private mutating func takeOffer() -> OfferBalance? {
        guard var balance = offerBalance else { return nil }
        balance.periodsLeft -= 1
        offerBalance = balance.periodsLeft > 0 ? balance : nil
        return balance
    }

    /// Plans the actions of steps in a period.
    private mutating func schedule(_ wanted: [CustomerScript.Step], in period: Period) {
        let length = Double(period.expires.milliseconds - period.purchase.milliseconds)
        let afterwards = min(length, Double(scale.length(of: .monthly)))
        for step in wanted {
            let within = min(max(step.at, 0), 1) * length
            let beyond = max(step.at - 1, 0) * afterwards
            insert(step.action, at: period.purchase + Int64(within + beyond))
        }
    }

    /// Plans an action at an instant.
    private mutating func insert(_ action: CustomerAction, at moment: StoreTime) {
        let index = steps.firstIndex { $0.at > moment } ?? steps.endIndex
        steps.insert((at: moment, action: action), at: index)
    }
}

/// What the periods and the phase say.
extension Life {
    /// Returns the number of the period with a transaction id, restored ones included.
    func periodNumber(of id: String) -> Int? {
        periods.indices.first { ordinal in
            (0...SubscriptionIDs.restoresMax).contains { ids.transactionID(of: ordinal, restore: $0) == id }
        }
    }

    /// Returns whether a period that was not cancelled runs.
    func isPaid(at now: StoreTime) -> Bool {
        periods.contains { $0.cancellation == nil && $0.purchase <= now && now < $0.expires }
    }

    /// Apple's code for why the subscription ended or is in retry.
    var expirationIntent: Int? {
        switch phase {
        case .subscribed: nil
        case .retrying: 2
        case .ended(let intent, _): intent
        }
    }

    /// The end of the newest grace period, even after it has passed.
    var graceUntil: StoreTime? {
        switch phase {
        case .subscribed: nil
        case .retrying(let graceUntil, _, _), .ended(_, let graceUntil): graceUntil
        }
    }

    var isInRetry: Bool { if case .retrying = phase { true } else { false } }
}

/// The automatic turns: charges, lapses, the ends of grace and retry, and the script's next step.
extension Life {
    enum Turn: Sendable {
        case charge
        case lapse(intent: Int)
        case graceEnd
        case retryEnd
        case step
    }

    /// The earliest pending turn. An overdue turn happens now, never in the past.
    var nextTurn: (at: StoreTime, turn: Turn)? {
        guard accountDeletedAt == nil else { return nil }
        let step = steps.first.map { (at: max($0.at, now), turn: Turn.step) }
        guard let own = phaseTurn.map({ (at: max($0.at, now), turn: $0.turn) }) else { return step }
        guard let step, step.at < own.at else { return own }
        return step
    }

    /// Does what is due: one automatic turn.
    mutating func perform(_ turn: Turn) {
        switch turn {
        case .charge: charge()
        case .lapse(let intent):
            record(.lapsed, period: head.ordinal, intent: intent)
            end(intent: intent)
        case .graceEnd:
            guard case .retrying(let graceUntil, _, let until) = phase else { return }
            phase = .retrying(graceUntil: graceUntil, graceIsOver: true, until: until)
            record(.graceEnded, period: head.ordinal)
        case .retryEnd:
            guard case .retrying(let graceUntil, _, _) = phase else { return }
            record(.lapsed, period: head.ordinal, intent: 2)
            end(intent: 2, graceUntil: graceUntil)
        case .step:
            let step = steps.removeFirst()
            // Where the life took another course than the script expected, the step has no meaning now.
            try? apply(step.action)
        }
    }

    /// Apple's expiration intent for a lapse at the end of the period; nil when the store will try to charge.
    var intentOfNextLapse: Int? {
        guard periods.count < Life.periodsMax else { return 1 }
        if environment == .sandbox, renewals >= Life.sandboxRenewalsMax { return 1 }
        guard !owesPayment else { return nil }
        guard renewalIsOn else { return 1 }
        switch priceConsent {
        case .asked: return 3
        case .given, nil: return obstacle
        }
    }

    private var phaseTurn: (at: StoreTime, turn: Turn)? {
        let head = head
        switch phase {
        case .subscribed:
            if let intent = intentOfNextLapse { return (head.expires, .lapse(intent: intent)) }
            // A charge of a failing card is attempted early too, but the failure shows only after the period.
            let offset = cardFails ? 0 : drawn.chargeOffset(in: head.ordinal, of: script, scale: scale)
            return (head.expires + offset, .charge)
        case .retrying(let graceUntil, let graceIsOver, let until):
            guard let graceUntil, !graceIsOver else { return (until, .retryEnd) }
            return (graceUntil, .graceEnd)
        case .ended: return nil
        }
    }

    /// Charges the next period, or starts to retry where the card fails.
    private mutating func charge() {
        let head = head
        guard !cardFails else { return startRetry(after: head) }
        renewals += 1
        let product = nextPaidProduct
        let kind: LifeEventKind =
            head.isTrial ? .converted : product == head.product ? .renewed : .changedAtRenewal
        book(product, purchase: head.expires, as: kind)
    }

    /// Begins billing retry, with its grace period.
    private mutating func startRetry(after head: Period) {
        // A term has no grace period, and a longer retry.
        let hasGrace = script.hasGrace && head.payment == nil
        let graceUntil = hasGrace ? head.expires + scale.grace(for: head.product) : nil
        let retry = head.payment == nil ? scale.retry : scale.paymentRetry
        phase = .retrying(graceUntil: graceUntil, graceIsOver: false, until: head.expires + retry)
        record(.billingFailed, period: head.ordinal)
        if graceUntil != nil { record(.graceStarted, period: head.ordinal) }
    }
}

/// Changes of the product, and returns of former customers.
extension Life {
    /// Begins the product of the higher level at once.
    mutating func upgrade() throws(ActionRefused) {
        let head = try replaceablePeriod()
        guard let product = head.product.upgrade else { throw ActionRefused("there is no higher level") }
        replace(head, with: product, as: .upgraded)
    }

    /// Changes to another product of the level: at once where it has the same length.
    mutating func crossgrade(to wanted: SubscriptionProduct?) throws(ActionRefused) {
        let head = try subscribedPeriod()
        guard let product = wanted ?? head.product.crossgrade, product.isCrossgrade(of: head.product) else {
            throw ActionRefused("there is no such product of the same level")
        }
        guard product.months == head.product.months else {
            return try choose(product, after: head, as: .crossgradeScheduled)
        }
        replace(try replaceablePeriod(), with: product, as: .crossgraded)
    }

    /// Chooses another product for the next renewal.
    mutating func downgrade(to wanted: SubscriptionProduct?) throws(ActionRefused) {
        let head = try subscribedPeriod()
        let product = wanted ?? head.product.downgrade
        guard head.product.isHigherLevel || !product.isHigherLevel else { throw ActionRefused("that is an upgrade") }
        try choose(product, after: head, as: .downgradeScheduled)
    }

    /// Begins again after the end, perhaps with another product.
    mutating func resubscribe(
        with wanted: SubscriptionProduct?, plan: BillingPlan? = nil, offer: OfferBalance?
    ) throws(ActionRefused) {
        let head = try ownPeriod()
        guard case .ended = phase else { throw ActionRefused("the subscription is not over") }
        guard periods.count < Life.periodsMax else { throw ActionRefused("the life has its most periods") }
        let product = wanted ?? head.product
        guard product.groupID == head.product.groupID else { throw ActionRefused("that is another group") }
        renewalIsOn = true
        cardFails = false
        obstacle = nil
        renewals = 0
        offerBalance = offer
        nextPlan = plan ?? script.plan
        book(product, purchase: now.wholeSecond, as: .resubscribed)
    }

    /// Redeems an offer: a lapsed customer comes back with it, any other has it from the next renewal on.
    mutating func redeem(_ offer: OfferBalance) throws(ActionRefused) {
        switch offer.offer {
        case .promotional, .offerCode: break
        case .freeTrial, .payAsYouGo, .payUpFront: throw ActionRefused("an introduction is for new customers")
        }
        switch phase {
        case .ended: try resubscribe(with: nil, offer: offer)
        case .subscribed, .retrying:
            let head = try subscribedPeriod()
            guard renewalIsOn else { throw ActionRefused("renewal is off") }
            guard head.payment == nil, head.seats == nil else {
                throw ActionRefused("offers of terms and groups are not known")
            }
            offerBalance = offer
            record(.offerRedeemed, period: head.ordinal)
        }
    }

    /// Returns the running period, where another product can replace it now.
    private func replaceablePeriod() throws(ActionRefused) -> Period {
        let head = try subscribedPeriod()
        guard head.cancellation == nil else { throw ActionRefused("the period is refunded") }
        guard head.seats == nil else { throw ActionRefused("what happens to the seats of a group is not known") }
        guard head.expires > now else { throw ActionRefused("the next charge is under way") }
        return head
    }

    /// Ends the running period and begins one of another product.
    private mutating func replace(_ head: Period, with product: SubscriptionProduct, as kind: LifeEventKind) {
        let instant = now.wholeSecond
        periods[head.ordinal].cancel(at: instant, reason: 0, isUpgrade: true)
        if !renewalIsOn { record(.renewalEnabled, period: head.ordinal) }
        renewalIsOn = true
        offerBalance = nil
        nextPlan = .upfront
        book(product, purchase: instant, as: kind)
    }

    /// Chooses the product of the next renewal.
    private mutating func choose(
        _ product: SubscriptionProduct, after head: Period, as kind: LifeEventKind
    ) throws(ActionRefused) {
        guard renewalIsOn else { throw ActionRefused("renewal is off") }
        guard product.groupID == head.product.groupID else { throw ActionRefused("that is another group") }
        guard product != nextProduct else { throw ActionRefused("that product is chosen already") }
        nextProduct = product
        record(product == head.product ? .changeWithdrawn : kind, period: head.ordinal)
    }
}

extension SubscriptionProduct {
    fileprivate func isCrossgrade(of other: SubscriptionProduct) -> Bool {
        self != other && groupID == other.groupID && isHigherLevel == other.isHigherLevel
    }
}
