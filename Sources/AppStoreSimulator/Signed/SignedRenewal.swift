/// The renewal information of a subscription as Apple signs it ("JWSRenewalInfo").
struct SignedRenewal: Sendable {
    let life: Life
    let head: Period
    let accountToken: String?
    let storefront: Storefront
    let namesPlan: Bool
    let appTransactionID: String

    /// Nil when the subscription has no period.
    init?(_ life: Life, of account: Account, in world: World) {
        guard let head = life.periods.last else { return nil }
        self.life = life
        self.head = head
        accountToken = life.script.isMember ? nil : world.token(of: head.buyer, account)
        storefront = world.storefront(of: account)
        appTransactionID = account.ids.appTransaction
        namesPlan = account.script.namesPlan
    }

    /// Writes the claims.
    func write(to json: inout JSONWriter, signedAt: StoreTime, bundleID: String) {
        json.object { json in
            if let intent = life.expirationIntent { json.number("expirationIntent", Int64(intent)) }
            json.text("originalTransactionId", life.ids.originalTransactionID)
            json.text("autoRenewProductId", life.nextPaidProduct.identifier(in: bundleID))
            json.text("productId", head.product.identifier(in: bundleID))
            json.number("autoRenewStatus", life.nextPaymentIsOn ? 1 : 0)
            if life.expirationIntent != nil { json.boolean("isInBillingRetryPeriod", life.isInRetry) }
            if let consent = life.priceConsent { json.number("priceIncreaseStatus", consent == .given ? 1 : 0) }
            // The date stays after the grace period, until a charge succeeds.
            if let graceUntil = life.graceUntil { json.number("gracePeriodExpiresDate", graceUntil.milliseconds) }
            nextOffer?.write(to: &json)
            json.number("signedDate", signedAt.milliseconds)
            json.text("environment", life.environment.rawValue)
            json.number("recentSubscriptionStartDate", life.recentStart.milliseconds)
            json.number("renewalDate", head.expires.milliseconds)
            json.number("renewalPrice", seatTiers?.average ?? nextPrice)
            json.text("currency", storefront.currency)
            if let accountToken { json.text("appAccountToken", accountToken) }
            json.text("appTransactionId", appTransactionID)
            writePlan(to: &json, bundleID: bundleID)
            guard let seatTiers else { return }
            json.number("renewalQuantity", Int64(seatTiers.quantity))
            json.object("multiSeatInfo") { seatTiers.write("renewalPriceTiers", to: &$0) }
        }
    }

    /// Writes the plan of the next payment, and within a term what follows it.
    private func writePlan(to json: inout JSONWriter, bundleID: String) {
        let next: BillingPlan = life.owesPayment ? .monthly : life.followingPlan
        if head.payment != nil || next == .monthly || namesPlan { json.text("renewalBillingPlanType", next.claim) }
        guard let payment = life.runningPayment else { return }
        json.object("commitmentInfo") { json in
            json.number("commitmentAutoRenewStatus", life.renewalIsOn ? 1 : 0)
            json.text("commitmentAutoRenewProductId", life.nextProduct.identifier(in: bundleID))
            json.number("commitmentRenewalDate", payment.termEnds.milliseconds)
            json.number("commitmentRenewalPrice", followingPrice)
            json.text("commitmentRenewalBillingPlanType", life.followingPlan.claim)
        }
    }

    private var seatTiers: SeatTiers? { life.nextSeats.map { SeatTiers($0, price: nextPrice) } }

    private var nextOffer: OfferClaims? {
        guard life.renewalIsOn, let balance = life.offerBalance else { return nil }
        return OfferClaims(offer: balance.offer, id: balance.id, product: life.nextProduct)
    }

    private var nextPrice: Int64 {
        guard !life.owesPayment else { return storefront.price(of: head) }
        return followingPrice
    }

    /// The price of the first payment after the term, or of the next period.
    private var followingPrice: Int64 {
        let increases = life.priceIncreases + (life.priceConsent == nil ? 0 : 1)
        if life.followingPlan == .monthly { return storefront.payment(of: life.nextProduct, increases: increases) }
        return storefront.price(of: life.nextProduct, with: nextOffer?.offer, increases: increases)
    }
}

extension Life {
    /// The start of the uninterrupted run of periods until now; a gap of at most sixty days is no interruption.
    fileprivate var recentStart: StoreTime {
        var start = periods.last?.purchase ?? self.start
        for period in periods.reversed() {
            guard period.expires + scale.retry >= start else { break }
            start = min(start, period.purchase)
        }
        return start
    }
}
