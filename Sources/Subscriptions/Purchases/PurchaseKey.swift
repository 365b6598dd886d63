/// The key of a one-time purchase within one environment of one app. Transaction ids are its aliases.
package struct PurchaseKey: Sendable, Hashable, Comparable {
    /// `original_transaction_id`.
    package let originalTransactionID: OriginalTransactionID
    /// `product_id`.
    package let productID: ProductID

    /// Creates a key from its parts.
    package init(originalTransactionID: OriginalTransactionID, productID: ProductID) {
        self.originalTransactionID = originalTransactionID
        self.productID = productID
    }

    /// Orders keys by original transaction, then product.
    package static func < (left: PurchaseKey, right: PurchaseKey) -> Bool {
        (left.originalTransactionID, left.productID) < (right.originalTransactionID, right.productID)
    }
}

/// The part of one answer about one one-time purchase: rows without an expiry.
package struct PurchaseEvidence: Sendable, Hashable {
    /// The purchase.
    package var key: PurchaseKey
    /// Apple's clock at the answer.
    package var asOf: Instant
    /// Its rows, from both lists.
    package var transactions: [TransactionRow]

    /// Creates evidence from its parts.
    package init(key: PurchaseKey, asOf: Instant, transactions: [TransactionRow]) {
        self.key = key
        self.asOf = asOf
        self.transactions = transactions
    }
}
