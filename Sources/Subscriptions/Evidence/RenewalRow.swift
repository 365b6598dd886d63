/// One row of `pending_renewal_info` (Apple: "responseBody.Pending_renewal_info").
package struct RenewalRow: Sendable, Hashable {
    /// Where the row stands in the answer, such as `pending_renewal_info[0]`; empty for a legacy answer's top level.
    package var path: String
    /// The instant it speaks for: `request_date`.
    package var asOf: Instant
    /// The subscription it speaks of.
    package var originalTransactionID: OriginalTransactionID
    /// What it says.
    package var renewal: Renewal

    /// How the row writes the end of grace; nil for the usual form.
    package var graceForm: InstantForm?

    /// A row that says `renewal` of one subscription.
    package init(
        path: String, asOf: Instant, originalTransactionID: OriginalTransactionID, renewal: Renewal,
        graceForm: InstantForm? = nil
    ) {
        self.path = path
        self.asOf = asOf
        self.originalTransactionID = originalTransactionID
        self.renewal = renewal
        self.graceForm = graceForm
    }

    /// A row from its fields.
    package init(
        path: String, asOf: Instant, originalTransactionID: OriginalTransactionID, productID: ProductID,
        renewsToProductID: ProductID? = nil, willRenew: Bool? = nil, expirationIntent: String? = nil,
        inBillingRetry: Bool? = nil, graceExpiresAt: Instant? = nil, priceConsentStatus: String? = nil,
        priceIncreaseStatus: String? = nil, promotionalOfferID: String? = nil, offerCodeRefName: String? = nil
    ) {
        self.init(
            path: path, asOf: asOf, originalTransactionID: originalTransactionID,
            renewal: Renewal(
                productID: productID, renewsToProductID: renewsToProductID, willRenew: willRenew,
                expirationIntent: expirationIntent, inBillingRetry: inBillingRetry, graceExpiresAt: graceExpiresAt,
                priceConsentStatus: priceConsentStatus, priceIncreaseStatus: priceIncreaseStatus,
                promotionalOfferID: promotionalOfferID, offerCodeRefName: offerCodeRefName))
    }
}
