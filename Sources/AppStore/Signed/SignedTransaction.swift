/// What a signed transaction states (Apple: "JWSTransactionDecodedPayload"). Unknown words stay raw.
///
/// Instants are milliseconds since 1970.
package struct SignedTransaction: Sendable, Hashable {
    /// When it was signed: the instant that it speaks for.
    package let signedAt: Int64
    /// `transactionId`.
    package let transactionID: String
    /// `originalTransactionId`; the transaction id if missing.
    package let originalTransactionID: String
    /// `webOrderLineItemId`; absent on one-time purchases.
    package let webOrderLineItemID: String?
    /// `bundleId`.
    package let bundleID: String?
    /// `environment`, raw.
    package let environment: String?
    /// `productId`.
    package let productID: String
    /// `type`, raw, such as Consumable.
    package let kind: String?
    /// `subscriptionGroupIdentifier`.
    package let subscriptionGroupIdentifier: String?
    /// `quantity`; 1 if missing or absurd.
    package let quantity: Int
    /// `purchaseDate`.
    package let purchasedAt: Int64
    /// `originalPurchaseDate`.
    package let originalPurchasedAt: Int64?
    /// `expiresDate`; a transaction without it is a one-time purchase.
    package let expiresAt: Int64?
    /// `revocationDate`.
    package let revokedAt: Int64?
    /// `revocationReason`, raw.
    package let revocationReason: String?
    /// `revocationPercentage`, in thousandths of a percent; everything if `revocationType` is `REFUND_FULL`.
    package let revocationPercentage: Int?
    /// `isUpgraded`.
    package let isUpgraded: Bool
    /// `offerType`, raw: 1 introductory, 2 promotional, 3 offer code, 4 win-back.
    package let offerType: String?
    /// `offerIdentifier`.
    package let offerIdentifier: String?
    /// `offerDiscountType`, raw.
    package let offerDiscountType: String?
    /// `inAppOwnershipType`, raw.
    package let ownershipType: String?
    /// `appAccountToken`.
    package let appAccountToken: String?
    /// `price` of the whole quantity, in thousandths of the currency's unit.
    package let price: Int64?
    /// `currency`.
    package let currency: String?
    /// `billingPlanType`, raw; absent where all is paid at once.
    package let billingPlanType: String?

    /// Reads the payload of a verified text; nil if it lacks a product, a transaction, a purchase instant or its own.
    package init?(_ text: SignedText) {
        self.init(payload: text.payload, signedAt: text.signedAt)
    }

    /// Reads a payload that was verified when it came.
    package init?(payload: [UInt8], signedAt: Int64? = nil) {
        guard let fields = PayloadFields(payload), let transactionID = fields.text("transactionId"),
            let productID = fields.text("productId"), let purchasedAt = fields.instant("purchaseDate"),
            let signedAt = signedAt ?? fields.instant("signedDate")
        else { return nil }
        self.signedAt = signedAt
        self.transactionID = transactionID
        self.productID = productID
        self.purchasedAt = purchasedAt
        originalTransactionID = fields.text("originalTransactionId") ?? transactionID
        webOrderLineItemID = fields.text("webOrderLineItemId")
        bundleID = fields.text("bundleId")
        environment = fields.text("environment")
        kind = fields.text("type")
        subscriptionGroupIdentifier = fields.text("subscriptionGroupIdentifier")
        quantity = fields.integer("quantity").flatMap { (1...1_000_000).contains($0) ? Int($0) : nil } ?? 1
        originalPurchasedAt = fields.instant("originalPurchaseDate")
        expiresAt = fields.instant("expiresDate")
        revokedAt = fields.instant("revocationDate")
        revocationReason = fields.text("revocationReason")
        // A full refund has no percentage (Apple: "revocationType").
        revocationPercentage =
            fields.text("revocationType") == "REFUND_FULL"
            ? 100_000
            : fields.integer("revocationPercentage").flatMap { (0...100_000).contains($0) ? Int($0) : nil }
        isUpgraded = fields.flag("isUpgraded") ?? false
        offerType = fields.text("offerType")
        offerIdentifier = fields.text("offerIdentifier")
        offerDiscountType = fields.text("offerDiscountType")
        ownershipType = fields.text("inAppOwnershipType")
        appAccountToken = fields.text("appAccountToken")
        price = fields.integer("price").flatMap { $0 >= 0 ? $0 : nil }
        currency = fields.text("currency")
        billingPlanType = fields.text("billingPlanType")
    }

    /// Whether it is a free trial. Older texts have no discount type: then a price of zero shows it.
    package var isTrial: Bool {
        guard offerType == "1" else { return false }
        return offerDiscountType.map { $0 == "FREE_TRIAL" } ?? (price == 0)
    }

    /// Whether it has an introductory price.
    package var isIntro: Bool { offerType == "1" && !isTrial }

    /// The identifier of a promotional offer, or of an offer to win a customer back.
    package var promotionalOfferID: String? { offerType == "2" || offerType == "4" ? offerIdentifier : nil }

    /// The reference name of an offer code.
    package var offerCodeRefName: String? { offerType == "3" ? offerIdentifier : nil }
}
