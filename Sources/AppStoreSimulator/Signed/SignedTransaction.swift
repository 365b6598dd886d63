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

    /// Writes the claims.
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
