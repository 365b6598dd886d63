/// One row of `pending_renewal_info` (Apple: "responseBody.Pending_renewal_info"), or a signed text about a renewal.
package struct RenewalRow: Sendable, Hashable {
    /// The row's place in the answer, such as `pending_renewal_info[0]`; empty for a legacy answer's top level.
    package var path: String
    /// The instant the row speaks for: `request_date`, or `signedDate`.
    package var asOf: Instant
    /// The subscription the row describes.
    package var originalTransactionID: OriginalTransactionID
    /// The renewal the row states.
    package var renewal: Renewal

    /// `renewalDate`: the expiry of the period whose renewal it is about, where a text gives it.
    package var periodEndsAt: Instant?
    /// The notation of the end of grace; nil for the usual form.
    package var graceForm: InstantForm?

    /// Whether its form can state grace. The top level of an answer about an iOS 6 receipt cannot.
    var statesGrace: Bool { !path.isEmpty && !path.hasSuffix("/") }

    /// Whether Apple signed it. A repeated answer does not renew its instant.
    package var isSigned: Bool { path.hasSuffix("signedRenewalInfo") }

    /// Creates a row that states `renewal` for one subscription.
    package init(
        path: String, asOf: Instant, originalTransactionID: OriginalTransactionID, renewal: Renewal,
        periodEndsAt: Instant? = nil, graceForm: InstantForm? = nil
    ) {
        self.periodEndsAt = periodEndsAt
        self.path = path
        self.asOf = asOf
        self.originalTransactionID = originalTransactionID
        self.renewal = renewal
        self.graceForm = graceForm
    }

    /// Creates a row from its fields.
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
