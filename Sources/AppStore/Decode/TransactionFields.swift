/// One row Apple sent about a purchase or a period, as it stands: nothing is concluded from it.
///
/// Instants are milliseconds since 1970. Apple: "responseBody.Latest_receipt_info" and "responseBody.Receipt.In_app".
package struct TransactionFields: Sendable, Hashable {
    /// Where the row stood: `latest_receipt_info[3]`, `receipt.in_app[0]`; in legacy answers `receipt`,
    /// `latest_receipt_info` or `latest_expired_receipt_info`.
    package let path: String
    /// How many were bought; 1 when missing or absurd.
    package let quantity: Int
    /// What was bought.
    package let productID: String
    /// One delivery of the purchase; not stable. A row without it, which Apple never sends, gets a name made of its
    /// original transaction and purchase instant (`1000/1432400579000`), so that two periods never share one.
    package let transactionID: String
    /// The subscription or purchase this belongs to; the transaction id when missing.
    package let originalTransactionID: String
    /// The billing period; absent on one-time purchases and on some family-shared rows.
    package let webOrderLineItemID: String?
    /// Start of this period; may lie in the future. The original purchase date when missing.
    package let purchasedAt: Int64
    /// Start of the chain, or the moment of a restore.
    package let originalPurchasedAt: Int64?
    /// End of the paid period, before any grace. A row without it is a one-time purchase.
    package let expiresAt: Int64?
    /// How the expiry was written.
    package let expiryForm: DateForm?
    /// When Apple refunded, revoked or replaced it. A customer who turns renewal off does not set it.
    package let cancelledAt: Int64?
    /// How the cancellation was written.
    package let cancellationForm: DateForm?
    /// `1`: trouble with the app; `0`: anything else; raw.
    package let cancellationReason: String?
    /// Whether the period is a free trial; nil where the row does not say it.
    package let isTrialPeriod: Bool?
    /// Whether the period has an introductory price; nil where the row does not say it.
    package let isInIntroOfferPeriod: Bool?
    /// Whether a higher level of service replaced it.
    package let isUpgraded: Bool
    /// The promotional offer redeemed.
    package let promotionalOfferID: String?
    /// The offer code's reference name.
    package let offerCodeRefName: String?
    /// The group of the product.
    package let subscriptionGroupIdentifier: String?
    /// `PURCHASED` or `FAMILY_SHARED`, raw.
    package let ownershipType: String?
    /// What the app passed at purchase, a UUID.
    package let appAccountToken: String?

    /// The path of one field, for an explanation: `latest_receipt_info[3].expires_date_ms`.
    package func path(of field: String) -> String { path + "." + field }

    /// Reads a row; nil when it names no product, no transaction or no moment, or gives one that cannot be read: without
    /// its expiry a subscription would be a purchase and never end, without its cancellation a refund would be missed.
    init?(reading fields: LenientFields, path: String) {
        let (starts, ends) = (fields.instant(.purchase), fields.instant(.expires))
        let cancelled = fields.instant(.cancellation)
        guard starts != nil || !fields.mentions(.purchase), ends != nil || !fields.mentions(.expires),
            cancelled != nil || !fields.mentions(.cancellation), let productID = fields.text(.productID),
            let purchasedAt = starts ?? fields.instant(.originalPurchase)
        else { return nil }
        let transactionID = fields.identifier(.transactionID)
        guard let originalTransactionID = fields.identifier(.originalTransactionID) ?? transactionID else {
            return nil
        }
        self.path = path
        self.productID = productID
        self.purchasedAt = purchasedAt
        self.originalTransactionID = originalTransactionID
        self.transactionID = transactionID ?? "\(originalTransactionID)/\(purchasedAt)"
        quantity = fields.whole(.quantity).flatMap { (1...1_000_000).contains($0) ? Int($0) : nil } ?? 1
        webOrderLineItemID = fields.identifier(.webOrderLineItemID)
        originalPurchasedAt = fields.instant(.originalPurchase)
        expiresAt = ends
        expiryForm = fields.form(of: .expires)
        // Zero is what others write for nothing: nobody was refunded in 1970.
        cancelledAt = cancelled.flatMap { $0 == 0 ? nil : $0 }
        cancellationForm = cancelledAt == nil ? nil : fields.form(of: .cancellation)
        cancellationReason = fields.text(.cancellationReason)
        isTrialPeriod = fields.flag(.isTrialPeriod)
        isInIntroOfferPeriod = fields.flag(.isInIntroOfferPeriod)
        isUpgraded = fields.flag(.isUpgraded) ?? false
        promotionalOfferID = fields.text(.promotionalOfferID)
        offerCodeRefName = fields.text(.offerCodeRefName)
        subscriptionGroupIdentifier = fields.identifier(.subscriptionGroupIdentifier)
        ownershipType = fields.text(.ownershipType)
        appAccountToken = fields.text(.appAccountToken)
    }
}
