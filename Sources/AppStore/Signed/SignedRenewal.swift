/// What signed renewal information states (Apple: "JWSRenewalInfoDecodedPayload"). Unknown words stay raw.
///
/// Instants are milliseconds since 1970.
package struct SignedRenewal: Sendable, Hashable {
    /// When it was signed: the instant that it speaks for.
    package let signedAt: Int64
    /// `originalTransactionId`.
    package let originalTransactionID: String
    /// `environment`, raw.
    package let environment: String?
    /// `productId`: the current product.
    package let productID: String
    /// `autoRenewProductId`.
    package let autoRenewProductID: String?
    /// `autoRenewStatus`.
    package let autoRenewStatus: Bool?
    /// `expirationIntent`, raw.
    package let expirationIntent: String?
    /// `isInBillingRetryPeriod`.
    package let isInBillingRetry: Bool?
    /// `gracePeriodExpiresDate`.
    package let graceExpiresAt: Int64?
    /// `priceIncreaseStatus`, raw.
    package let priceIncreaseStatus: String?
    /// The identifier of the promotional offer of the next period.
    package let promotionalOfferID: String?
    /// The reference name of the offer code of the next period.
    package let offerCodeRefName: String?
    /// `renewalBillingPlanType`, raw.
    package let renewalPlan: String?
    /// `commitmentInfo`: what the customer wants after the term of payments that runs; nil outside of a term.
    package let term: Term?
    /// `renewalDate`: when the newest period ends.
    package let renewalAt: Int64?

    /// Reads the payload of a verified text; nil if it lacks its subscription, product or instant.
    package init?(_ text: SignedText) {
        self.init(payload: text.payload, signedAt: text.signedAt)
    }

    /// Reads a payload that was verified when it came.
    package init?(payload: [UInt8], signedAt: Int64? = nil) {
        guard let fields = PayloadFields(payload), let originalTransactionID = fields.text("originalTransactionId"),
            let productID = fields.text("productId") ?? fields.text("autoRenewProductId"),
            let signedAt = signedAt ?? fields.instant("signedDate")
        else { return nil }
        self.signedAt = signedAt
        self.originalTransactionID = originalTransactionID
        self.productID = productID
        environment = fields.text("environment")
        autoRenewProductID = fields.text("autoRenewProductId")
        autoRenewStatus = fields.flag("autoRenewStatus")
        expirationIntent = fields.text("expirationIntent")
        isInBillingRetry = fields.flag("isInBillingRetryPeriod")
        graceExpiresAt = fields.instant("gracePeriodExpiresDate")
        priceIncreaseStatus = fields.text("priceIncreaseStatus")
        let (offer, type) = (fields.text("offerIdentifier"), fields.text("offerType"))
        promotionalOfferID = type == "2" || type == "4" ? offer : nil
        offerCodeRefName = type == "3" ? offer : nil
        renewalAt = fields.instant("renewalDate")
        renewalPlan = fields.text("renewalBillingPlanType")
        term = fields.object("commitmentInfo").map { term in
            Term(
                renews: term.flag("commitmentAutoRenewStatus"), productID: term.text("commitmentAutoRenewProductId"),
                plan: term.text("commitmentRenewalBillingPlanType"))
        }
    }

    /// What the customer wants after a term of payments.
    package struct Term: Sendable, Hashable {
        /// `commitmentAutoRenewStatus`.
        package let renews: Bool?
        /// `commitmentAutoRenewProductId`.
        package let productID: String?
        /// `commitmentRenewalBillingPlanType`, raw.
        package let plan: String?
    }
}
