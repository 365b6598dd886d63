/// What Apple says about the next renewal of one subscription, as it stands.
///
/// Instants are milliseconds since 1970. Apple: "responseBody.Pending_renewal_info".
public struct RenewalFields: Sendable, Hashable {
    /// `pending_renewal_info[0]`; empty in legacy answers, whose renewal fields stand at the top.
    public let path: String
    /// The subscription. Old answers leave it out; then it is the only one in the answer with this product.
    public let originalTransactionID: String
    /// The current product.
    public let productID: String
    /// The product that will renew; another one than `productID` when a change is scheduled.
    public let autoRenewProductID: String?
    /// Whether it will renew.
    public let autoRenewStatus: Bool?
    /// Why it expired, `1` to `5`, raw: 1 renewal off, 2 billing, 3 price, 4 product not for sale, 5 other.
    public let expirationIntent: String?
    /// Whether Apple is still trying to charge; also true during grace.
    public let isInBillingRetry: Bool?
    /// End of access during grace; stays in the data after grace is over.
    public let graceExpiresAt: Int64?
    /// `0` or `1` once the customer was told of an increase that needs consent, raw.
    public let priceConsentStatus: String?
    /// `0` not answered, `1` agreed or no consent needed, raw.
    public let priceIncreaseStatus: String?
    /// The promotional offer of the next renewal.
    public let promotionalOfferID: String?
    /// The offer code of the next renewal.
    public let offerCodeRefName: String?

    /// The path of one field, for an explanation: `pending_renewal_info[0].auto_renew_status`.
    public func path(of field: String) -> String { path.isEmpty ? field : path + "." + field }

    /// What makes an object a renewal; one of these must be there.
    static let speakingFields = [
        "auto_renew_status", "auto_renew_product_id", "expiration_intent", "is_in_billing_retry_period",
        "grace_period_expires_date_ms", "grace_period_expires_date", "price_consent_status", "price_increase_status",
    ]

    /// Reads a row; nil when it says nothing, or it cannot be told which subscription it speaks of.
    init?(reading object: JSONValue, path: String, among rows: [TransactionFields]) {
        let fields = LenientFields(object: object)
        guard Self.speakingFields.contains(where: { fields.text($0) != nil }) else { return nil }
        let renewsTo = fields.text("auto_renew_product_id")
        let named = fields.identifier("original_transaction_id")
        let product = fields.text("product_id") ?? Self.newest(rows, of: named)?.productID ?? renewsTo
        guard let product, let original = named ?? Self.onlySubscription(of: product, among: rows) else { return nil }
        self.path = path
        originalTransactionID = original
        productID = product
        autoRenewProductID = renewsTo
        autoRenewStatus = fields.flag("auto_renew_status")
        expirationIntent = fields.text("expiration_intent")
        isInBillingRetry = fields.flag("is_in_billing_retry_period")
        graceExpiresAt = fields.instant("grace_period_expires_date")
        priceConsentStatus = fields.text("price_consent_status")
        priceIncreaseStatus = fields.text("price_increase_status")
        promotionalOfferID = fields.text("promotional_offer_id")
        offerCodeRefName = fields.text("offer_code_ref_name")
    }

    /// The row that ends last, of one subscription or, where none is named, of all.
    private static func newest(_ rows: [TransactionFields], of original: String?) -> TransactionFields? {
        rows.filter { original == nil || $0.originalTransactionID == original }
            .max { ($0.expiresAt ?? 0, $0.purchasedAt) < ($1.expiresAt ?? 0, $1.purchasedAt) }
    }

    /// The one subscription with this product; nil when there is none, or several to choose from.
    private static func onlySubscription(of product: String, among rows: [TransactionFields]) -> String? {
        let originals = Set(rows.filter { $0.productID == product }.map(\.originalTransactionID))
        return originals.count == 1 ? originals.first : nil
    }
}
