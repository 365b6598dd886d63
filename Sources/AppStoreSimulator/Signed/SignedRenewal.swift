/// The renewal information of a subscription as Apple signs it ("JWSRenewalInfo").
struct SignedRenewal: Sendable {
    let life: Life
    let head: Period
    let accountToken: String?
    let storefront: Storefront
    let appTransactionID: String

    /// Nil when the subscription has no period.
    init?(_ life: Life, of account: Account, in world: World) {
        guard let head = life.periods.last else { return nil }
        self.life = life
        self.head = head
        accountToken = life.script.isFamilyShared ? nil : world.token(of: head.buyer, account)
        storefront = world.storefront(of: account)
        appTransactionID = account.ids.appTransaction
    }

    /// Writes the claims.
    func write(to json: inout JSONWriter, signedAt: StoreTime, bundleID: String) {
        json.object { json in
            if let intent = life.expirationIntent { json.number("expirationIntent", Int64(intent)) }
            json.text("originalTransactionId", life.ids.originalTransactionID)
            json.text("autoRenewProductId", life.nextProduct.identifier(in: bundleID))
            json.text("productId", head.product.identifier(in: bundleID))
            json.number("autoRenewStatus", life.renewalIsOn ? 1 : 0)
            if life.expirationIntent != nil { json.boolean("isInBillingRetryPeriod", life.isInRetry) }
            if let consent = life.priceConsent { json.number("priceIncreaseStatus", consent == .given ? 1 : 0) }
            // The date stays after the grace period, until a charge succeeds.
            if let graceUntil = life.graceUntil { json.number("gracePeriodExpiresDate", graceUntil.milliseconds) }
            nextOffer?.write(to: &json)
            json.number("signedDate", signedAt.milliseconds)
            json.text("environment", life.environment.rawValue)
            json.number("recentSubscriptionStartDate", life.recentStart.milliseconds)
            json.number("renewalDate", head.expires.milliseconds)
            json.number("renewalPrice", nextPrice)
            json.text("currency", storefront.currency)
            if let accountToken { json.text("appAccountToken", accountToken) }
            json.text("appTransactionId", appTransactionID)
        }
    }

    private var nextOffer: OfferClaims? {
        guard life.renewalIsOn, let balance = life.offerBalance else { return nil }
        return OfferClaims(offer: balance.offer, id: balance.id, product: life.nextProduct)
    }

    private var nextPrice: Int64 {
        storefront.price(
            of: life.nextProduct, with: nextOffer?.offer,
            increases: life.priceIncreases + (life.priceConsent == nil ? 0 : 1))
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
