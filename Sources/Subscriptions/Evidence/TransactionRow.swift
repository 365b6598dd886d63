/// One row of `latest_receipt_info` or `receipt.in_app` (Apple: "responseBody.Latest_receipt_info").
package struct TransactionRow: Sendable, Hashable {
    /// The row's place in the answer, such as `latest_receipt_info[3]`.
    package var path: String
    /// The list that contains the row.
    package var source: EvidenceSource
    /// The instant the row speaks for: `request_date`, or `receipt_creation_date` for a device receipt.
    package var asOf: Instant
    /// `transaction_id`: one delivery of the purchase, not stable.
    package var transactionID: TransactionID
    /// `original_transaction_id`: the subscription or one-time purchase.
    package var originalTransactionID: OriginalTransactionID
    /// `web_order_line_item_id`: the billing period; absent on one-time purchases and some family rows.
    package var webOrderLineItemID: WebOrderLineItemID?
    /// `product_id`.
    package var productID: ProductID
    /// `quantity`; 1 where it is missing or absurd.
    package var quantity: Int
    /// `purchase_date`: the start of the period, possibly in the future.
    package var purchasedAt: Instant
    /// `original_purchase_date`.
    package var originalPurchasedAt: Instant?
    /// `expires_date`: the end of the paid period before any grace; absent on one-time purchases.
    package var expiresAt: Instant?
    /// `cancellation_date`: refunded, revoked or replaced. Not the customer's own "cancel".
    package var cancelledAt: Instant?
    /// `cancellation_reason`, raw.
    package var cancellationReason: String?
    /// `is_upgraded`: another row replaced this one.
    package var isUpgraded: Bool
    /// `is_trial_period`; nil if the row does not state it.
    package var isTrialPeriod: Bool?
    /// `is_in_intro_offer_period`; nil if the row does not state it.
    package var isInIntroOfferPeriod: Bool?
    /// `promotional_offer_id`.
    package var promotionalOfferID: String?
    /// `offer_code_ref_name`.
    package var offerCodeRefName: String?
    /// `subscription_group_identifier`.
    package var groupID: SubscriptionGroupID?
    /// `in_app_ownership_type`.
    package var ownership: Ownership?
    /// `app_account_token`.
    package var appAccountToken: String?
    /// `price` and `currency` of a signed transaction.
    package var price: Price?
    /// `revocationPercentage` of a signed transaction, in thousandths of a percent.
    package var revocationPercentage: Int?
    /// What a signed transaction states of its sale; nil where it states nothing of it.
    package var sale: Sale?
    /// The notation of the expiry; nil for the usual form of such a row.
    package var expiryForm: InstantForm?
    /// The notation of the cancellation; nil for the usual form.
    package var cancellationForm: InstantForm?

    /// Creates a row from its fields.
    package init(
        path: String, source: EvidenceSource, asOf: Instant, transactionID: TransactionID,
        originalTransactionID: OriginalTransactionID, webOrderLineItemID: WebOrderLineItemID? = nil,
        productID: ProductID, quantity: Int = 1, purchasedAt: Instant, originalPurchasedAt: Instant? = nil,
        expiresAt: Instant? = nil, cancelledAt: Instant? = nil, cancellationReason: String? = nil,
        isUpgraded: Bool = false, isTrial: Bool? = nil, isIntro: Bool? = nil, promotionalOfferID: String? = nil,
        offerCodeRefName: String? = nil, groupID: SubscriptionGroupID? = nil, ownership: Ownership? = nil,
        appAccountToken: String? = nil, price: Price? = nil, revocationPercentage: Int? = nil,
        sale: Sale? = nil, expiryForm: InstantForm? = nil, cancellationForm: InstantForm? = nil
    ) {
        self.path = path
        self.source = source
        self.asOf = asOf
        self.transactionID = transactionID
        self.originalTransactionID = originalTransactionID
        self.webOrderLineItemID = webOrderLineItemID
        self.productID = productID
        self.quantity = quantity
        self.purchasedAt = purchasedAt
        self.originalPurchasedAt = originalPurchasedAt
        self.expiresAt = expiresAt
        self.cancelledAt = cancelledAt
        self.cancellationReason = cancellationReason
        self.isUpgraded = isUpgraded
        isTrialPeriod = isTrial
        isInIntroOfferPeriod = isIntro
        self.promotionalOfferID = promotionalOfferID
        self.offerCodeRefName = offerCodeRefName
        self.groupID = groupID
        self.ownership = ownership
        self.appAccountToken = appAccountToken
        self.price = price
        self.revocationPercentage = revocationPercentage
        self.sale = sale
        self.expiryForm = expiryForm
        self.cancellationForm = cancellationForm
    }

    /// Returns the row as it counts in an answer. A device's snapshot of the same instant as the answer yields to
    /// Apple's own statement, as if it were a millisecond older.
    func yieldingToAnswer(at answer: Instant) -> TransactionRow {
        guard source == .deviceReceipt, asOf >= answer else { return self }
        var older = self
        older.asOf = answer - Delay(milliseconds: 1)
        return older
    }
}

/// One row of `pending_renewal_info` (Apple: "responseBody.Pending_renewal_info"), or a signed text about a renewal.
package struct RenewalRow: Sendable, Hashable {
    /// The row's place in the answer, such as `pending_renewal_info[0]`; empty for a legacy answer's top level.
    package var path: String
    /// The instant the row speaks for: that of the answer, or the `signedDate` of a single text.
    package var asOf: Instant
    /// The subscription the row describes.
    package var originalTransactionID: OriginalTransactionID
    /// The renewal the row states.
    package var renewal: Renewal

    /// The notation of the end of grace; nil for the usual form.
    package var graceForm: InstantForm?

    /// Whether its form can state grace. The top level of an answer about an iOS 6 receipt cannot.
    var statesGrace: Bool { !path.isEmpty && !path.hasSuffix("/") }

    /// Creates a row that states `renewal` for one subscription.
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
}

/// The notation of an instant in a field of an answer. It affects only the quotes in an explanation.
package enum InstantForm: Sendable, Hashable {
    /// `expires_date_ms`: milliseconds since 1970, as Apple sends today.
    case milliseconds
    /// `expires_date` holding milliseconds, as legacy answers do.
    case plain
    /// `expires_date` as text, `2015-02-10 09:00:00 Etc/GMT`, in rows so old that they have no other form.
    case text
    /// `expires_date_formatted`, the same text in legacy answers.
    case formatted

    /// Returns the field's whole name, such as `expires_date_ms` for `expires_date`.
    func field(_ name: String) -> String {
        switch self {
        case .milliseconds: name + "_ms"
        case .plain, .text: name
        case .formatted: name + "_formatted"
        }
    }

    /// Returns the instant as the field writes it.
    func value(_ instant: Instant) -> String {
        switch self {
        case .milliseconds, .plain: String(instant.milliseconds)
        case .text, .formatted: instant.iso8601.prefix(19).split(separator: "T").joined(separator: " ") + " Etc/GMT"
        }
    }
}
