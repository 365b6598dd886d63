/// Names a one-time purchase within one environment of one app. Transaction ids are aliases of it.
public struct PurchaseKey: Sendable, Hashable, Comparable {
    /// `original_transaction_id`.
    public let originalTransactionID: OriginalTransactionID
    /// `product_id`.
    public let productID: ProductID

    /// A key from its parts.
    public init(originalTransactionID: OriginalTransactionID, productID: ProductID) {
        self.originalTransactionID = originalTransactionID
        self.productID = productID
    }

    /// Orders keys by original transaction, then product.
    public static func < (left: PurchaseKey, right: PurchaseKey) -> Bool {
        (left.originalTransactionID, left.productID) < (right.originalTransactionID, right.productID)
    }
}

/// What one answer says of one one-time purchase: rows without an expiry.
public struct PurchaseEvidence: Sendable, Hashable {
    /// The purchase.
    public var key: PurchaseKey
    /// Apple's clock at the answer.
    public var asOf: Instant
    /// Its rows, from both lists.
    public var transactions: [TransactionRow]

    /// Evidence from its parts.
    public init(key: PurchaseKey, asOf: Instant, transactions: [TransactionRow]) {
        self.key = key
        self.asOf = asOf
        self.transactions = transactions
    }
}
