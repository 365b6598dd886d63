import Postgres
package import Subscriptions

/// An invariant that does not hold for one row of the ledger, as seen twice in snapshots a moment apart.
package struct Violation: Sendable, Hashable {
    /// The invariant that does not hold.
    package let invariant: Invariant
    /// The app; nil where a position of the feed belongs to none.
    package let bundleID: BundleID?
    /// The environment; nil for a receipt whose environment is not known.
    package let environment: StoreEnvironment?
    /// The id of the subscription or one-time purchase.
    package let originalTransactionID: OriginalTransactionID?
    /// The product of a one-time purchase.
    package let productID: ProductID?
    /// The receipt, or the receipt that polls the subscription.
    package let receiptID: ReceiptID?
    /// The problem, as a clause.
    package let detail: String
    /// The key by which it was found.
    let key: Int64

    /// The identity by which two looks recognize the same violation.
    struct Identity: Hashable {
        let invariant: Invariant
        let key: Int64
    }

    var identity: Identity { Identity(invariant: invariant, key: key) }
}

extension Violation {
    /// Reads a row of a check's own statement.
    init(_ invariant: Invariant, row: Row) throws {
        self.invariant = invariant
        bundleID = try row.textIfPresent("bundle_id").map { BundleID($0) }
        environment = try row.wordIfPresent("environment")
        originalTransactionID = try row.textIfPresent("original_transaction_id").map { OriginalTransactionID($0) }
        productID = try row.textIfPresent("product_id").map { ProductID($0) }
        receiptID = try row.int8IfPresent("receipt_id").map { ReceiptID($0) }
        detail = try row.text("detail")
        key = try row.int8("key")
    }

    /// Describes a violation of a loaded subscription.
    init(_ invariant: Invariant, of draft: SubscriptionDraft, in bundleID: BundleID, _ detail: String) {
        self.invariant = invariant
        self.bundleID = bundleID
        environment = draft.key.environment
        originalTransactionID = draft.key.id
        productID = nil
        receiptID = draft.polling.storedPoller
        self.detail = detail
        key = draft.rowID
    }

    /// The violation and the advice, in one line.
    package var sentence: String {
        let purchase = productID.map { "\($0) of " } ?? ""
        let thing = originalTransactionID.map { "\(purchase)\($0)" } ?? receiptID.map { "receipt \($0)" }
        let place = [bundleID?.text, environment?.rawValue, thing].compactMap(\.self).joined(separator: " ")
        return "\(invariant.rawValue): \(place.isEmpty ? "the feed" : place): \(detail). \(invariant.advice)"
    }
}
