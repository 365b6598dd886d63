/// A transaction as Apple signs it ("JWSTransaction"): what the row of verifyReceipt says, and more.
struct SignedTransaction: Sendable {
    /// Apple's taking back of a transaction.
    struct Revocation: Sendable {
        let at: StoreTime
        let reason: Int
        /// `REFUND_FULL`, `REFUND_PRORATED`, `FAMILY_REVOKE`, or for a seat a word that Apple has not published.
        let type: String
        /// Thousandths of a percent; absent where no money is returned.
        let percentage: Int64?
    }

    var id: String
    let originalID: String
    var webOrderLineItemID: String?
    let productID: String
    var groupID: String?
    let purchase: StoreTime
    let originalPurchase: StoreTime
    var expires: StoreTime?
    var quantity = PurchaseQuantity.one
    let kind: DeliveryKind
    let accountToken: String?
    var ownership = "PURCHASED"
    var isUpgraded = false
    var revocation: Revocation?
    var offer: OfferClaims?
    var isRenewal = false
    /// Of the whole quantity, in thousandths of the currency; for a group the average of a seat.
    var price: Int64
    /// The plan, where the text names one.
    var plan: BillingPlan?
    var payment: Payment?
    /// What the whole term costs.
    var termPrice: Int64 = 0
    var seats: Seats?
    var seatTiers: SeatTiers?
    let storefront: Storefront
    let appTransactionID: String
    let environment: StoreEnvironment
    /// The app finished it: a consumable then is in no receipt and in no old history.
    var isFinished = false
    /// When any of this last changed.
    let modifiedAt: StoreTime

    /// Whether another customer pays.
    var isShared: Bool { ownership != "PURCHASED" }

    /// What the customer paid, in thousandths of the currency: nothing for a member.
    var paid: Int64 { isShared ? 0 : seatTiers?.total ?? price }

    /// What the customer got back of it.
    var returned: Int64 {
        if let revocation { return paid * (revocation.percentage ?? 0) / 100_000 }
        guard let seats else { return 0 }
        return paid * Int64(seats.revoked) / Int64(seats.count)
    }

    /// Writes the claims as Apple signs them.
    func write(to json: inout JSONWriter, signedAt: StoreTime, bundleID: String) {
        json.object { json in
            json.text("transactionId", id)
            json.text("originalTransactionId", originalID)
            if let webOrderLineItemID { json.text("webOrderLineItemId", webOrderLineItemID) }
            json.text("bundleId", bundleID)
            json.text("productId", productID)
            if let groupID { json.text("subscriptionGroupIdentifier", groupID) }
            json.number("purchaseDate", purchase.milliseconds)
            json.number("originalPurchaseDate", originalPurchase.milliseconds)
            if let expires { json.number("expiresDate", expires.milliseconds) }
            json.number("quantity", Int64(seats?.count ?? quantity.count))
            json.text("type", kind.type)
            if let accountToken { json.text("appAccountToken", accountToken) }
            json.text("inAppOwnershipType", ownership)
            json.number("signedDate", signedAt.milliseconds)
            if let revocation { write(revocation, to: &json) }
            if isUpgraded { json.boolean("isUpgraded", true) }
            offer?.write(to: &json)
            json.text("environment", environment.rawValue)
            json.text("transactionReason", isRenewal ? "RENEWAL" : "PURCHASE")
            json.text("storefront", storefront.country)
            json.text("storefrontId", storefront.id)
            json.number("price", price)
            json.text("currency", storefront.currency)
            json.text("appTransactionId", appTransactionID)
            writePlan(to: &json)
            writeSeats(to: &json)
        }
    }

    /// Writes the plan, and within a term its payment.
    private func writePlan(to json: inout JSONWriter) {
        if let plan { json.text("billingPlanType", plan.claim) }
        guard let payment else { return }
        json.object("commitmentInfo") { json in
            json.number("billingPeriodNumber", Int64(payment.number))
            json.number("totalBillingPeriods", Int64(Payment.total))
            json.number("commitmentExpiresDate", payment.termEnds.milliseconds)
            json.number("commitmentPrice", termPrice)
        }
    }

    /// Writes the seats of a group.
    private func writeSeats(to json: inout JSONWriter) {
        guard let seats, let seatTiers else { return }
        if seats.isOneOfSeveral { json.text("additionalTransactionReason", "SEAT_ADDITION") }
        json.object("multiSeatInfo") { json in
            json.text("invitationManagement", "APPLE")
            seatTiers.write("priceTiers", to: &json)
            // Only the purchaser's text says which seats were refunded.
            if seats.revoked > 0, !isShared { json.number("revokedSeatQuantity", Int64(seats.revoked)) }
        }
    }

    private func write(_ revocation: Revocation, to json: inout JSONWriter) {
        json.number("revocationReason", Int64(revocation.reason))
        json.number("revocationDate", revocation.at.milliseconds)
        json.text("revocationType", revocation.type)
        if let percentage = revocation.percentage { json.number("revocationPercentage", percentage) }
    }
}

extension DeliveryKind {
    /// Apple's `type`.
    var type: String {
        switch self {
        case .consumable: "Consumable"
        case .nonConsumable: "Non-Consumable"
        case .nonRenewing: "Non-Renewing Subscription"
        case .subscription: "Auto-Renewable Subscription"
        }
    }

    /// The kind in a request for a part of the history.
    var productType: String {
        switch self {
        case .consumable: "CONSUMABLE"
        case .nonConsumable: "NON_CONSUMABLE"
        case .nonRenewing: "NON_RENEWING"
        case .subscription: "AUTO_RENEWABLE"
        }
    }
}

extension SignedTransaction {
    private static let wholePercentage: Int64 = 100_000

    /// Returns the transactions that the store has booked, in no particular order.
    static func all(of account: Account, in world: World) -> [SignedTransaction] {
        let purchases = account.bought.map { SignedTransaction($0, of: account, in: world) }
        return account.begun.flatMap { life in
            life.periods.map { SignedTransaction($0, of: life, account, in: world) }
        } + purchases
    }

    /// Returns the transaction with an id, a restored one included; nil when there is none.
    static func one(_ id: String, of account: Account, in world: World) -> SignedTransaction? {
        var found: SignedTransaction
        if let place = account.period(id) {
            let life = account.lives[place.subscription]
            found = SignedTransaction(life.periods[place.period], of: life, account, in: world)
        } else if let number = account.purchaseNumber(of: id) {
            found = SignedTransaction(account.purchases.purchases[number], of: account, in: world)
        } else {
            return nil
        }
        found.id = id
        return found
    }

    /// Returns the transaction as a device has it that restored; nil for a consumable, which does not come back.
    func restored(_ restore: Int, of account: Account) -> SignedTransaction? {
        guard restore > 0 else { return self }
        var restored = self
        if let place = account.period(id) {
            restored.id = account.lives[place.subscription].ids.transactionID(of: place.period, restore: restore)
        } else if kind == .nonConsumable, let number = account.purchaseNumber(of: id) {
            restored.id = account.ids.purchase(number, restore: restore)
        } else {
            return nil
        }
        return restored
    }

    init(_ bought: OneTimePurchase, of account: Account, in world: World) {
        let now = account.now
        let storefront = world.storefront(of: account)
        self.init(
            id: account.ids.purchase(bought.ordinal), originalID: account.ids.purchase(bought.ordinal),
            productID: bought.product.identifier(in: world.bundleID), purchase: bought.at, originalPurchase: bought.at,
            kind: bought.product.kind, accountToken: world.token(of: bought.buyer, account),
            price: storefront.price(of: bought.product) * Int64(bought.order.quantity.count), storefront: storefront,
            appTransactionID: account.ids.appTransaction, environment: account.environment,
            modifiedAt: bought.modifiedAt(asOf: now))
        quantity = bought.order.quantity
        isFinished = bought.finishedAt.map { $0 <= now } ?? false
        revocation = bought.refund(asOf: now).map {
            Revocation(at: $0, reason: 0, type: "REFUND_FULL", percentage: Self.wholePercentage)
        }
    }

    init(_ period: Period, of life: Life, _ account: Account, in world: World) {
        let isShared = life.script.isMember
        let storefront = world.storefront(of: account)
        self.init(
            id: life.ids.transactionID(of: period.ordinal), originalID: life.ids.originalTransactionID,
            productID: period.product.identifier(in: world.bundleID), purchase: period.purchase,
            originalPurchase: life.originalPurchase, kind: .subscription,
            accountToken: isShared ? nil : world.token(of: period.buyer, account),
            price: storefront.price(of: period),
            storefront: storefront, appTransactionID: account.ids.appTransaction, environment: life.environment,
            modifiedAt: period.modifiedAt)
        webOrderLineItemID = isShared ? nil : life.ids.webOrderLineItemID(of: period.ordinal)
        groupID = period.product.groupID
        expires = period.expires
        ownership = life.script.ownership
        payment = period.payment
        plan = period.payment != nil || account.script.namesPlan ? period.plan : nil
        termPrice = price * Int64(Payment.total)
        seats = period.seats
        seatTiers = period.seats.map { SeatTiers($0.count, price: price) }
        price = seatTiers?.average ?? price
        isRenewal = period.kind.upload == .renewal
        offer = period.redeemed.map { OfferClaims(redeemed: $0, product: period.product) }
        guard let cancellation = period.cancellation else { return }
        isUpgraded = cancellation.isUpgrade
        // As in verifyReceipt, the sandbox gives an upgraded transaction no date.
        if !(cancellation.isUpgrade && life.environment == .sandbox) {
            revocation = takenBack(cancellation, of: period)
        }
    }

    /// Returns what Apple signs about a cancellation.
    private func takenBack(_ cancellation: Period.Cancellation, of period: Period) -> Revocation {
        func made(_ type: String, _ percentage: Int64?) -> Revocation {
            Revocation(at: cancellation.at, reason: cancellation.reason, type: type, percentage: percentage)
        }
        if isShared { return made(ownership == "ASSIGNED" ? "ASSIGNMENT_REVOKE" : "FAMILY_REVOKE", nil) }
        guard cancellation.isUpgrade else { return made("REFUND_FULL", Self.wholePercentage) }
        let length = max(1, period.expires.milliseconds - period.purchase.milliseconds)
        let left = min(length, max(0, period.expires.milliseconds - cancellation.at.milliseconds))
        return made("REFUND_PRORATED", Self.wholePercentage * left / length)
    }
}

/// The renewal information of a subscription as Apple signs it ("JWSRenewalInfo").
struct SignedRenewal: Sendable {
    let life: Life
    let account: Account
    let world: World

    private var head: Period { life.head }
    private var storefront: Storefront { world.storefront(of: account) }

    /// Writes the claims as Apple signs them.
    func write(to json: inout JSONWriter, signedAt: StoreTime, bundleID: String) {
        json.object { json in
            if let intent = life.expirationIntent { json.number("expirationIntent", Int64(intent)) }
            json.text("originalTransactionId", life.ids.originalTransactionID)
            json.text("autoRenewProductId", life.nextPaidProduct.identifier(in: bundleID))
            json.text("productId", head.product.identifier(in: bundleID))
            json.number("autoRenewStatus", life.nextPaymentIsOn ? 1 : 0)
            if life.expirationIntent != nil { json.boolean("isInBillingRetryPeriod", life.isInRetry) }
            if let consent = life.priceConsent { json.number("priceIncreaseStatus", consent.rawValue) }
            // The date stays after the grace period, until a charge succeeds.
            if let graceUntil = life.graceUntil { json.number("gracePeriodExpiresDate", graceUntil.milliseconds) }
            nextOffer?.write(to: &json)
            json.number("signedDate", signedAt.milliseconds)
            json.text("environment", life.environment.rawValue)
            json.number("recentSubscriptionStartDate", life.recentStart.milliseconds)
            json.number("renewalDate", head.expires.milliseconds)
            json.number("renewalPrice", seatTiers?.average ?? nextPrice)
            json.text("currency", storefront.currency)
            if !life.script.isMember, let token = world.token(of: head.buyer, account) {
                json.text("appAccountToken", token)
            }
            json.text("appTransactionId", account.ids.appTransaction)
            writePlan(to: &json, bundleID: bundleID)
            guard let seatTiers else { return }
            json.number("renewalQuantity", Int64(seatTiers.quantity))
            json.object("multiSeatInfo") { seatTiers.write("renewalPriceTiers", to: &$0) }
        }
    }

    /// Writes the plan of the next payment, and within a term what follows it.
    private func writePlan(to json: inout JSONWriter, bundleID: String) {
        let next: BillingPlan = life.owesPayment ? .monthly : life.followingPlan
        if head.payment != nil || next == .monthly || account.script.namesPlan {
            json.text("renewalBillingPlanType", next.claim)
        }
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
        return OfferClaims(redeemed: balance, product: life.nextProduct)
    }

    private var nextPrice: Int64 { life.owesPayment ? storefront.price(of: head) : followingPrice }

    /// The price of the first payment after the term, or of the next period.
    private var followingPrice: Int64 {
        let increases = life.priceIncreases + (life.priceConsent == nil ? 0 : 1)
        if life.followingPlan == .monthly { return storefront.payment(of: life.nextProduct, increases: increases) }
        return storefront.price(of: life.nextProduct, with: nextOffer?.redeemed.offer, increases: increases)
    }
}

extension Life {
    /// The start of the uninterrupted run of periods until now; a gap of at most sixty days is no interruption.
    fileprivate var recentStart: StoreTime {
        var start = head.purchase
        for period in periods.reversed() {
            guard period.expires + scale.retry >= start else { break }
            start = min(start, period.purchase)
        }
        return start
    }
}

/// The claims about an offer, in signed transactions and signed renewals alike.
struct OfferClaims: Sendable {
    let redeemed: OfferBalance
    let product: SubscriptionProduct

    /// Writes the claims as Apple signs them.
    func write(to json: inout JSONWriter) {
        let offer = redeemed.offer
        json.number("offerType", offer.type)
        switch offer {
        case .promotional: json.text("offerIdentifier", redeemed.id)
        case .offerCode: json.text("offerIdentifier", PeriodOffer.offerCodeName)
        case .freeTrial, .payAsYouGo, .payUpFront: break
        }
        json.text("offerDiscountType", offer.discount)
        json.text("offerPeriod", period)
    }

    /// The length of the offer's period, as in ISO 8601.
    private var period: String {
        switch (redeemed.offer, product.months) {
        case (.freeTrial, _): "P1W"
        case (.payUpFront, ..<1): "P2W"
        case (.payUpFront, 1..<12): "P2M"
        case (_, ..<1): "P1W"
        case (_, 1..<12): "P1M"
        case (_, _): "P1Y"
        }
    }
}

extension PeriodOffer {
    /// Apple's `offerType`.
    fileprivate var type: Int64 {
        switch self {
        case .freeTrial, .payAsYouGo, .payUpFront: 1
        case .promotional: 2
        case .offerCode: 3
        }
    }

    /// Apple's `offerDiscountType`.
    fileprivate var discount: String {
        switch self {
        case .freeTrial: "FREE_TRIAL"
        case .payUpFront: "PAY_UP_FRONT"
        case .payAsYouGo, .promotional, .offerCode: "PAY_AS_YOU_GO"
        }
    }
}

/// The prices of some seats in signed transactions and signed renewals: the first ones cost most.
struct SeatTiers: Sendable {
    let tiers: [(price: Int64, quantity: Int)]

    /// Prices some seats. The first five cost the price itself.
    init(_ seats: Int, price: Int64) {
        let bounds = [(5, price), (20, price * 9 / 10), (Seats.countMax, price * 8 / 10)]
        var (rest, before) = (max(0, seats), 0)
        var found: [(price: Int64, quantity: Int)] = []
        for (bound, price) in bounds where rest > 0 {
            let quantity = min(rest, bound - before)
            found.append((price, quantity))
            (rest, before) = (rest - quantity, bound)
        }
        // Apple does not promise an order.
        tiers = seats % 2 == 0 ? found.reversed() : found
    }

    var quantity: Int { tiers.reduce(0) { $0 + $1.quantity } }
    /// What all of them cost.
    var total: Int64 { tiers.reduce(0) { $0 + $1.price * Int64($1.quantity) } }
    /// The average of a seat, rounded down: times the quantity it is not the total.
    var average: Int64 { total / Int64(max(1, quantity)) }

    /// Writes the tiers under a claim of this name.
    func write(_ key: StaticString, to json: inout JSONWriter) {
        json.array(key) { json in
            for tier in tiers {
                json.object { json in
                    json.number("price", tier.price)
                    json.number("quantity", Int64(tier.quantity))
                }
            }
        }
    }
}
