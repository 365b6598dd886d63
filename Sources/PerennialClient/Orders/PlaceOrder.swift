import Foundation

/// One page of a customer's orders.
public struct OrderPage: Sendable, Hashable, Decodable {
    /// The orders, the oldest first.
    public let orders: [Order]
    /// The id to continue after; nil at the end.
    public let next: String?
}

extension PerennialServer {
    /// Places an order before its payment. Placing the same value again gives the same answer for 24 hours.
    ///
    /// Needs a key of scope `write`. Throws `too-many` where the customer has 20 open orders, `conflict` where another
    /// order has the `idempotencyKey`.
    public func place(_ order: NewOrder) async throws -> PlacedOrder {
        let body = OrderBody(
            customer: order.customer, productID: order.productID, quantity: order.quantity,
            price: order.price?.amount, currency: order.price?.currency, device: order.device)
        let call = Call(
            method: "POST", path: try appPath("orders"), body: try JSONText.encode(body),
            headers: ["Idempotency-Key": order.idempotencyKey])
        return try await answer(PlacedOrder.self, to: call, of: [200, 201])
    }

    /// An order and where it is. Needs a key of scope `read`; throws `not-found` for an id that the app has not.
    public func order(_ id: String) async throws -> Order {
        try await answer(Order.self, to: Call(path: try appPath("orders/\(try Call.part(id))")))
    }

    /// A customer's orders, the oldest first. Needs a key of scope `read`.
    /// - Parameters:
    ///   - customer: Your own id of the customer.
    ///   - state: Only orders in this state; nil gives all.
    ///   - after: The `next` of the page before; nil begins.
    ///   - limit: The most orders of the page, 1 to 1,000.
    public func orders(
        of customer: String, in state: OrderState? = nil, after: String? = nil, limit: Int = 1_000
    ) async throws -> OrderPage {
        var query = ["limit=\(limit)"]
        if let state { query.append("state=\(try Call.part(state.rawValue))") }
        if let after { query.append("after=\(try Call.part(after))") }
        let path = try appPath("customers/\(try Call.part(customer))/orders")
        return try await answer(OrderPage.self, to: Call(path: path + "?" + query.joined(separator: "&")))
    }
}

private struct OrderBody: Encodable {
    let customer: String
    let productID: String
    let quantity: Int
    let price: String?
    let currency: String?
    let device: String?

    enum CodingKeys: String, CodingKey {
        case customer, quantity, price, currency, device
        case productID = "product_id"
    }
}
