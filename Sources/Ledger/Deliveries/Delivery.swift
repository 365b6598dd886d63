import Postgres
package import Subscriptions

/// What a purchase or a period gives or takes back, once.
package struct Delivery: Sendable, Hashable {
    /// Where a delivery is.
    package enum State: String, Sendable, CaseIterable {
        /// The operator's service is to carry it out.
        case due
        /// The operator's service carried it out.
        case acknowledged
        /// Nothing is to be done.
        case skipped
    }

    /// The number of the delivery.
    package let id: Int64
    /// Its place in the queue, from 1 without a gap; nil in the moment after its commit.
    package let position: Int64?
    /// The operator's own id of the customer.
    package let customer: String
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The product.
    package let productID: ProductID
    /// What the product is.
    package let kind: ProductKind
    /// What a consumable adds to.
    package let credit: String?
    /// The units that it adds or takes back.
    package let units: Int64?
    /// Odd turns give, even turns take back.
    package let turn: Int32
    /// Why: purchase, renewal, refund, refund_reversed or transfer.
    package let reason: String
    /// The order that the transaction pays.
    package let orderID: String?
    /// Apple's transaction.
    package let transactionID: TransactionID
    /// Apple's first transaction of the purchase or subscription.
    package let originalTransactionID: OriginalTransactionID
    /// Where it is.
    package let state: State
    /// When it was stored.
    package let createdAt: Instant
    /// When it was acknowledged or skipped.
    package let settledAt: Instant?
    /// The API key, person or rule that did it.
    package let settledBy: String?
    /// Why it was skipped.
    package let skipReason: String?
}

extension Delivery {
    init(row: Row) throws {
        id = try row.int8("delivery_id")
        position = try row.int8IfPresent("position")
        customer = try row.text("customer")
        environment = try row.word("environment")
        productID = ProductID(try row.text("product_id"))
        kind = try row.word("kind")
        credit = try row.textIfPresent("credit")
        units = try row.int8IfPresent("units")
        turn = try row.int4("turn")
        reason = try row.text("reason")
        orderID = try row.textIfPresent("order_id")
        transactionID = TransactionID(try row.text("transaction_id"))
        originalTransactionID = OriginalTransactionID(try row.text("original_transaction_id"))
        state = try row.word("state")
        createdAt = try row.instant("created_at")
        settledAt = try row.instantIfPresent("settled_at")
        settledBy = try row.textIfPresent("settled_by")
        skipReason = try row.textIfPresent("skip_reason")
    }
}
