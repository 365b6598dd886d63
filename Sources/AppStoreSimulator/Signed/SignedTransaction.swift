/// A transaction as Apple signs it ("JWSTransaction"): what the row of verifyReceipt says, and more.
struct SignedTransaction: Sendable {
    /// Apple's taking back of a transaction.
    struct Revocation: Sendable {
        let at: StoreTime
        let reason: Int
        /// `REFUND_FULL`, `REFUND_PRORATED` or `FAMILY_REVOKE`.
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
    var isShared = false
    var isUpgraded = false
    var revocation: Revocation?
    var offer: OfferClaims?
    var isRenewal = false
    /// Of the whole quantity, in thousandths of the currency.
    let price: Int64
    let storefront: Storefront
    let appTransactionID: String
    let environment: StoreEnvironment
    /// The app finished it: a consumable then is in no receipt and in no old history.
    var isFinished = false
    /// When any of this last changed.
    let modifiedAt: StoreTime

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
            json.number("quantity", Int64(quantity.count))
            json.text("type", kind.type)
            if let accountToken { json.text("appAccountToken", accountToken) }
            json.text("inAppOwnershipType", isShared ? "FAMILY_SHARED" : "PURCHASED")
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
