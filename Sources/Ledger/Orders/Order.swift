import Postgres
package import Subscriptions

/// What a customer is about to buy, or bought.
package struct Order: Sendable, Hashable {
    /// The order's id, a UUID.
    package let id: String
    /// The operator's own id of the customer, as its name means now.
    package let customer: String
    /// The product.
    package let productID: ProductID
    /// How many.
    package let quantity: Int32
    /// Apple's environment; nil until it is paid.
    package let environment: StoreEnvironment?
    /// Where it is.
    package let state: OrderState
    /// What brought the state.
    package let cause: String
    /// When it was placed.
    package let createdAt: Instant
    /// When it expires if it is not paid.
    package let expiresAt: Instant
    /// Apple's date of the transaction that pays it.
    package let paidAt: Instant?
    /// Apple's transaction that pays it.
    package let transactionID: String?
    /// What it gives and took back.
    package let deliveryIDs: [String]
}

extension Order {
    init(row: Row) throws {
        id = try row.text("order_id")
        customer = try row.text("customer")
        productID = ProductID(try row.text("product_id"))
        quantity = try row.int4("quantity")
        environment = try row.wordIfPresent("environment")
        state = try row.word("state")
        cause = try row.text("cause")
        createdAt = try row.instant("created_at")
        expiresAt = try row.instant("expires_at")
        paidAt = try row.instantIfPresent("paid_at")
        transactionID = try row.textIfPresent("transaction_id")
        deliveryIDs = try row.texts("delivery_ids")
    }
}
