/// One subscription's life, a state machine that moves from turn to turn. Its state at an instant depends only on its
/// script, its seed and the actions applied so far, never on how often it was read.
struct Life: Sendable {
    enum Phase: Sendable, Equatable {
        case subscribed
        case retrying(graceUntil: StoreTime?, graceIsOver: Bool, until: StoreTime)
        /// The subscription ended, with Apple's expiration intent; a revoked family share has none.
        case ended(intent: Int?, graceUntil: StoreTime?)

        /// Whether it runs, or may be charged again by itself.
        var isLive: Bool {
            switch self {
            case .subscribed, .retrying: true
            case .ended: false
            }
        }
    }

    struct ScheduledStep: Sendable {
        let at: StoreTime
        let action: CustomerAction
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
    var steps: [ScheduledStep] = []
    /// The customer who made the newest purchase, which the renewals continue.
    var buyer: Buyer
    /// Apple's `original_purchase_date`: a little after the first purchase, as observed.
    var originalPurchase: StoreTime { start + 2000 }

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
        begin(with: script.isPaidMonthly ? nil : script.startOffer)
    }

    private mutating func begin(with offer: PeriodOffer?) {
        let kind: LifeEventKind =
            switch offer {
            case .freeTrial: .trialStarted
            case .payAsYouGo, .payUpFront, .promotional, .offerCode: .offerStarted
            case nil: .purchased
            }
        offerBalance = offer.map { OfferBalance($0) }
        book(script.product, purchase: start, as: kind)
    }

    /// Advances to an instant. An earlier instant changes nothing.
    mutating func advance(to moment: StoreTime) {
        while let turn = nextTurn, turn.at <= moment {
            now = turn.at
            perform(turn)
        }
        now = max(now, moment)
    }

    /// Adds a period, at the price of an offer while one lasts, and all of the script's steps in it.
    mutating func book(_ product: SubscriptionProduct, purchase: StoreTime, as kind: LifeEventKind) {
        let payment = payment(of: product, from: purchase)
        let isWithinTerm = payment.map { $0.number > 1 } ?? false
        let offer = payment == nil ? takeOffer() : nil
        if priceConsent == .given, !isWithinTerm { priceIncreases += 1 }
        let period = Period(
            ordinal: periods.count, kind: kind, product: product, bookedAt: now, purchase: purchase,
            expires: purchase + (payment == nil ? scale.length(of: product, with: offer?.offer) : scale.payment),
            offer: offer, priceIncreases: priceIncreases, buyer: buyer, payment: payment,
            seats: nextSeats.map { Seats(count: $0, isAddition: false) })
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
        guard let last = periods.last, let back = drawn.comeback(after: last.ordinal, of: script, scale: scale) else {
            return
        }
        insert(ScheduledStep(at: now + back.delay, action: back.action))
    }

    mutating func record(_ kind: LifeEventKind, period: Int? = nil, intent: Int? = nil) {
        lifeEvents.append(LifeEvent(at: now, kind: kind, ordinal: period, expirationIntent: intent))
    }

    private mutating func takeOffer() -> OfferBalance? {
        guard var balance = offerBalance else { return nil }
        balance.periodsLeft -= 1
        offerBalance = balance.periodsLeft > 0 ? balance : nil
        return balance
    }

    private mutating func schedule(_ wanted: [CustomerScript.Step], in period: Period) {
        let length = Double(period.expires.milliseconds - period.purchase.milliseconds)
        let afterwards = min(length, Double(scale.length(of: .monthly)))
        for step in wanted {
            let within = min(max(step.at, 0), 1) * length
            let beyond = max(step.at - 1, 0) * afterwards
            insert(ScheduledStep(at: period.purchase + Int64(within + beyond), action: step.action))
        }
    }

    private mutating func insert(_ step: ScheduledStep) {
        let index = steps.firstIndex { $0.at > step.at } ?? steps.endIndex
        steps.insert(step, at: index)
    }
}
