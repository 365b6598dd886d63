import Postgres
import Subscriptions

/// An invariant that does not hold of one thing: it was seen twice, in snapshots a moment apart.
package struct Violation: Sendable, Hashable {
    /// What does not hold.
    package let invariant: Invariant
    /// The app; nil where a position of the feed belongs to none.
    package let bundleID: BundleID?
    /// The environment; nil while it is not known of a receipt.
    package let environment: StoreEnvironment?
    /// The subscription's id, or the one-time purchase's.
    package let originalTransactionID: OriginalTransactionID?
    /// The product, of a one-time purchase.
    package let productID: ProductID?
    /// The receipt, or the one that polls the subscription.
    package let receiptID: ReceiptID?
    /// What is wrong, as a clause.
    package let detail: String
    /// The key by which it was found.
    let key: Int64

    /// What makes two looks see the same violation.
    struct Identity: Hashable {
        let invariant: Invariant
        let key: Int64
    }

    var identity: Identity { Identity(invariant: invariant, key: key) }
}

extension Violation {
    /// A row of a check's own statement.
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

    /// What is wrong of a loaded subscription.
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

    /// The violation and what to do, in one line.
    package var sentence: String {
        let purchase = productID.map { "\($0) of " } ?? ""
        let thing = originalTransactionID.map { "\(purchase)\($0)" } ?? receiptID.map { "receipt \($0)" }
        let place = [bundleID?.text, environment?.rawValue, thing].compactMap(\.self).joined(separator: " ")
        return "\(invariant.rawValue): \(place.isEmpty ? "the feed" : place): \(detail). \(invariant.advice)"
    }
}
