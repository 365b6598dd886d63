/// One row from Apple about a purchase or a period, unchanged and without conclusions.
///
/// Instants are milliseconds since 1970. Apple: "responseBody.Latest_receipt_info" and "responseBody.Receipt.In_app".
package struct TransactionFields: Sendable, Hashable {
    /// The place of the row: `latest_receipt_info[3]`, `receipt.in_app[0]`; in legacy answers `receipt`,
    /// `latest_receipt_info` or `latest_expired_receipt_info`.
    package let path: String
    /// The quantity bought; 1 if missing or absurd.
    package let quantity: Int
    /// The product bought.
    package let productID: String
    /// One delivery of the purchase; not stable. Apple never sends a row without it. Such a row gets a name made of its
    /// original transaction and purchase instant (`1000/1432400579000`), so that two periods never share one.
    package let transactionID: String
    /// The subscription or purchase of this row; the transaction id if missing.
    package let originalTransactionID: String
    /// The billing period; absent on one-time purchases and on some family-shared rows.
    package let webOrderLineItemID: String?
    /// The start of this period; may lie in the future. The original purchase date if missing.
    package let purchasedAt: Int64
    /// The start of the chain, or the moment of a restore.
    package let originalPurchasedAt: Int64?
    /// The end of the paid period, before any grace. A row without it is a one-time purchase.
    package let expiresAt: Int64?
    /// The notation of the expiry.
    package let expiryForm: DateForm?
    /// The instant at which Apple refunded, revoked or replaced it. A customer who turns renewal off does not set it.
    package let cancelledAt: Int64?
    /// The notation of the cancellation.
    package let cancellationForm: DateForm?
    /// `1`: a problem with the app; `0`: anything else; raw.
    package let cancellationReason: String?
    /// Whether the period is a free trial; nil if the row does not state it.
    package let isTrialPeriod: Bool?
    /// Whether the period has an introductory price; nil if the row does not state it.
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
    /// The token that the app passed at purchase, a UUID.
    package let appAccountToken: String?

    /// Returns the path of one field, for an explanation: `latest_receipt_info[3].expires_date_ms`.
    package func path(of field: String) -> String { path + "." + field }

    /// Reads a row; nil if it lacks a product, a transaction or a purchase instant, or contains an instant that cannot
    /// be read. Without its expiry a subscription would be a purchase and never end; without its cancellation a refund
    /// would be missed.
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
        quantity = fields.integer(.quantity).flatMap { (1...1_000_000).contains($0) ? Int($0) : nil } ?? 1
        webOrderLineItemID = fields.identifier(.webOrderLineItemID)
        originalPurchasedAt = fields.instant(.originalPurchase)
        expiresAt = ends
        expiryForm = fields.form(of: .expires)
        // Some sources write zero for no value: there were no refunds in 1970.
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
