/// Apple's information about the renewal of a subscription: the meaning of one row of `pending_renewal_info`.
package struct Renewal: Hashable, Sendable {
    /// `product_id`: the current product.
    package var productID: ProductID
    /// `auto_renew_product_id`: the product that will renew.
    package var renewsToProductID: ProductID?
    /// `auto_renew_status`.
    package var willRenew: Bool?
    /// `expiration_intent`, raw: 1 voluntary, 2 billing, 3 price increase, 4 product not for sale, 5 other.
    package var expirationIntent: String?
    /// `is_in_billing_retry_period`; also true during grace.
    package var inBillingRetry: Bool?
    /// `grace_period_expires_date`; it remains in the data after grace is over.
    package var graceExpiresAt: Instant?
    /// Whether Apple's status says grace although the row gives no date of its end.
    package var isInGraceByStatus: Bool
    /// `price_consent_status`, raw: "0" means the customer was asked and has not agreed.
    package var priceConsentStatus: String?
    /// `price_increase_status`, raw: "0" not agreed yet, "1" agreed or informed.
    package var priceIncreaseStatus: String?
    /// `promotional_offer_id` of the next renewal.
    package var promotionalOfferID: String?
    /// `offer_code_ref_name` of the next renewal.
    package var offerCodeRefName: String?

    /// What the customer wants after the term of payments that runs; nil where that is not stated.
    package var term: TermWill?

    /// Creates a renewal from its fields.
    package init(
        productID: ProductID, renewsToProductID: ProductID? = nil, willRenew: Bool? = nil,
        expirationIntent: String? = nil, inBillingRetry: Bool? = nil, graceExpiresAt: Instant? = nil,
        priceConsentStatus: String? = nil, priceIncreaseStatus: String? = nil, promotionalOfferID: String? = nil,
        offerCodeRefName: String? = nil, isInGraceByStatus: Bool = false, term: TermWill? = nil
    ) {
        self.term = term
        self.isInGraceByStatus = isInGraceByStatus
        self.productID = productID
        self.renewsToProductID = renewsToProductID
        self.willRenew = willRenew
        self.expirationIntent = expirationIntent
        self.inBillingRetry = inBillingRetry
        self.graceExpiresAt = graceExpiresAt
        self.priceConsentStatus = priceConsentStatus
        self.priceIncreaseStatus = priceIncreaseStatus
        self.promotionalOfferID = promotionalOfferID
        self.offerCodeRefName = offerCodeRefName
    }

    /// Whether the customer wants to go on: within a term of payments after it, whatever Apple will try before.
    package var isWanted: Bool? { term?.renews ?? willRenew }

    /// The product that the customer wants next: within a term of payments after it.
    package var wantedProductID: ProductID? { term?.productID ?? renewsToProductID }

    /// Whether nothing contradicts a renewal: not switched off, no intent, no billing retry.
    package var isExpected: Bool {
        willRenew != false && expirationIntent == nil && inBillingRetry != true
    }

    /// Whether Apple may still try to charge: it names a failed payment, and has not stated that it gave up.
    package var mayRecover: Bool { expirationIntent == "2" && inBillingRetry != false }

    /// Whether the customer was asked to agree to a higher price and has not.
    package var awaitsPriceConsent: Bool {
        priceConsentStatus == "0" || priceIncreaseStatus == "0"
    }
}

extension Renewal: FactValue {
    /// Orders renewals. Any total order suffices: no two different renewals of one instant are known to occur.
    package func yields(to other: Renewal) -> Bool {
        orderedFields.lexicographicallyPrecedes(other.orderedFields)
    }

    private var orderedFields: [String] {
        func text<Value>(_ value: Value?) -> String { value.map { "=\($0)" } ?? "" }
        return [
            text(graceExpiresAt?.milliseconds), text(willRenew), text(expirationIntent), text(inBillingRetry),
            text(productID), text(renewsToProductID), text(priceConsentStatus), text(priceIncreaseStatus),
            text(promotionalOfferID), text(offerCodeRefName), isInGraceByStatus ? "=" : "", text(term),
        ]
    }
}
