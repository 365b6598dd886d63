/// Apple's information about the next renewal of one subscription, unchanged.
///
/// Instants are milliseconds since 1970. Apple: "responseBody.Pending_renewal_info".
package struct RenewalFields: Sendable, Hashable {
    /// The row's path, such as `pending_renewal_info[0]`; empty in legacy answers, whose renewal fields are at the top
    /// level.
    package let path: String
    /// The subscription. If an old answer omits it, it is the only subscription in the answer with this product.
    package let originalTransactionID: String
    /// The current product.
    package let productID: String
    /// The product that will renew; differs from `productID` if a change is scheduled.
    package let autoRenewProductID: String?
    /// Whether it will renew.
    package let autoRenewStatus: Bool?
    /// The reason it expired, `1` to `5`, raw: 1 renewal off, 2 billing, 3 price, 4 product not for sale, 5 other.
    package let expirationIntent: String?
    /// Whether Apple is still trying to charge; also true during grace.
    package let isInBillingRetry: Bool?
    /// The end of access during grace; remains in the data after grace is over.
    package let graceExpiresAt: Int64?
    /// The notation of the end of grace.
    package let graceForm: DateForm?
    /// `0` or `1` once the customer was informed of an increase that needs consent, raw.
    package let priceConsentStatus: String?
    /// `0` not answered, `1` agreed or no consent needed, raw.
    package let priceIncreaseStatus: String?
    /// The promotional offer of the next renewal.
    package let promotionalOfferID: String?
    /// The offer code of the next renewal.
    package let offerCodeRefName: String?

    /// Returns the path of one field, for an explanation: `pending_renewal_info[0].auto_renew_status`.
    package func path(of field: String) -> String { path.isEmpty ? field : path + "." + field }

    /// Returns the name of the first field that makes an object a renewal; nil if there is none.
    static func firstWord(in fields: LenientFields) -> String? {
        let words: [AnswerField] = [
            .autoRenewStatus, .autoRenewProductID, .expirationIntent, .isInBillingRetryPeriod, .priceConsentStatus,
            .priceIncreaseStatus,
        ]
        if let word = words.first(where: { fields.text($0) != nil }) { return word.name }
        return [.milliseconds, .plain].first { fields.text(.gracePeriodExpires, $0) != nil }
            .map { AnswerDate.gracePeriodExpires.name + $0.suffix }
    }

    /// Reads a row; nil if it contains no renewal field, or if its subscription cannot be determined.
    init?(reading fields: LenientFields, path: String, among known: inout KnownSubscriptions) {
        guard Self.firstWord(in: fields) != nil else { return nil }
        let renewsTo = fields.text(.autoRenewProductID)
        let named = fields.identifier(.originalTransactionID)
        let product = fields.text(.productID) ?? known.newestProduct(of: named) ?? renewsTo
        guard let product, let original = named ?? known.onlySubscription(of: product) else { return nil }
        self.path = path
        originalTransactionID = original
        productID = product
        autoRenewProductID = renewsTo
        autoRenewStatus = fields.flag(.autoRenewStatus)
        expirationIntent = fields.text(.expirationIntent)
        isInBillingRetry = fields.flag(.isInBillingRetryPeriod)
        graceExpiresAt = fields.instant(.gracePeriodExpires)
        graceForm = fields.form(of: .gracePeriodExpires)
        priceConsentStatus = fields.text(.priceConsentStatus)
        priceIncreaseStatus = fields.text(.priceIncreaseStatus)
        promotionalOfferID = fields.text(.promotionalOfferID)
        offerCodeRefName = fields.text(.offerCodeRefName)
    }
}
