/// One row of `latest_receipt_info` or `receipt.in_app` (Apple: "responseBody.Latest_receipt_info").
@dynamicMemberLookup package struct TransactionRow: Sendable, Hashable {
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
    package var quantity = 1
    /// `purchase_date`: the start of the period, possibly in the future.
    package var purchasedAt: Instant
    /// `expires_date`: the end of the paid period before any grace; absent on one-time purchases.
    package var expiresAt: Instant?
    /// `cancellation_date`: refunded, revoked or replaced. Not the customer's own "cancel".
    package var cancelledAt: Instant?
    /// `cancellation_reason`, raw.
    package var cancellationReason: String?
    /// `is_upgraded`: another row replaced this one.
    package var isUpgraded = false
    /// What it says besides, each fact with the origin ``FactOrigin/row``; see also the subscript.
    @Boxed package var details = PeriodDetails()
    /// The notation of the expiry; nil for the usual form of such a row.
    package var expiryForm: InstantForm?
    /// The notation of the cancellation; nil for the usual form.
    package var cancellationForm: InstantForm?

    /// The value that it says of one detail, such as `row.ownership`; nil where it says nothing.
    @inlinable package subscript<Value>(dynamicMember detail: WritableKeyPath<PeriodDetails, Fact<Value>?>) -> Value? {
        get { details[keyPath: detail]?.value }
        set { details[keyPath: detail] = newValue.map { Fact($0, origin: .row) } }
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

extension TransactionRow {
    /// Creates a row from what each one has; the rest is set afterwards.
    package init(
        path: String, source: EvidenceSource, asOf: Instant, transactionID: TransactionID,
        originalTransactionID: OriginalTransactionID, productID: ProductID, purchasedAt: Instant
    ) {
        self.init(
            path: path, source: source, asOf: asOf, transactionID: transactionID,
            originalTransactionID: originalTransactionID, webOrderLineItemID: nil, productID: productID,
            purchasedAt: purchasedAt)
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

    /// Returns the instant as the row's field writes it, for quotes in explanations.
    func value(_ instant: Instant) -> String {
        switch self {
        case .milliseconds, .plain: String(instant.milliseconds)
        case .text, .formatted: instant.iso8601.prefix(19).split(separator: "T").joined(separator: " ") + " Etc/GMT"
        }
    }
}
