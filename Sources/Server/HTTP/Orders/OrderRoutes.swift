import Hummingbird
import Ledger
import Subscriptions

/// `POST` and `GET /v1/apps/{bundle}/orders…`, `…/orders/{id}:cancel`, and a customer's orders.
struct OrderRoutes: Sendable {
    /// The default and the largest number of orders of a page.
    static let ordersMax: Int64 = 1_000

    let ledger: SubscriptionLedger
    let apps: KnownApps
    let limits: ServerLimits

    func addRoutes(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .write).post("/v1/apps/{bundle}/orders", use: place)
        routes.ofApp(needing: .read).get("/v1/apps/{bundle}/orders/{id}", use: show)
        routes.ofApp(needing: .write).post("/v1/apps/{bundle}/orders/{id}:cancel", use: cancel)
        routes.ofApp(needing: .read, query: ["state", "after", "limit"])
            .get("/v1/apps/{bundle}/customers/{id}/orders", use: list)
    }

    private func place(_ request: Request, _ context: AppContext) async throws -> Response {
        let body = try await limits.json(OrderBody.self, of: request)
        _ = try await apps.require(context.bundleID)
        guard let key = request.idempotencyKey, !key.isEmpty else {
            throw Problem(
                .invalid, "The header Idempotency-Key is missing; send a UUID, and the same one when you repeat this.")
        }
        let placed = try await ledger.acting(as: .key(context.key.id)).orders.place(
            try body.request, of: context.bundleID, requestKey: key)
        return Response(
            [
                "order_id": .string(placed.id), "key": .string(placed.key),
                "app_account_token": .string(placed.appAccountToken), "state": .string(placed.state.rawValue),
                "expires_at": .string(placed.expiresAt.iso8601),
            ], status: placed.isNew ? .created : .ok)
    }

    private func show(_ request: Request, _ context: AppContext) async throws -> Response {
        _ = try await apps.require(context.bundleID)
        let id = try context.parameters.decoded("id")
        guard let order = try await ledger.orders.read(id, of: context.bundleID) else {
            throw Problem(.notFound, "\(context.bundleID) has no order \(id).")
        }
        return Response(order.json)
    }

    private func cancel(_ request: Request, _ context: AppContext) async throws -> Response {
        _ = try await limits.json(NoFields.self, of: request)
        _ = try await apps.require(context.bundleID)
        let id = try context.parameters.decoded("id")
        let orders = ledger.acting(as: .key(context.key.id)).orders
        return Response(try await orders.cancel(id, of: context.bundleID).json)
    }

    private func list(_ request: Request, _ context: AppContext) async throws -> Response {
        _ = try await apps.require(context.bundleID)
        let limit = try request.number("limit", from: 1, upTo: Self.ordersMax) ?? Self.ordersMax
        let customer = try context.parameters.decoded("id")
        try Upload.requireValidCustomerID(customer)
        let orders = try await ledger.orders.read(
            of: customer, in: context.bundleID,
            state: try request.word("state", OrderState.self), after: request.uri.queryParameters.get("after"),
            limit: Int(limit))
        let next = orders.count == Int(limit) ? orders.last?.id : nil
        return Response(["orders": .array(orders.map(\.json)), "next": .optional(next)])
    }
}

/// The body of a new order.
private struct OrderBody: KnownFields {
    let customer: String
    let productID: String
    let quantity: Quantity?
    /// The price that the customer was shown.
    let price: Milliunits?
    /// The currency of that price, ISO 4217.
    let currency: String?
    /// The app's own id of the device.
    let device: String?

    struct Quantity: Decodable {
        let count: Int32

        init(from decoder: any Decoder) throws {
            count = try decoder.singleValueContainer().number(in: OrderRequest.quantityAllowed)
        }
    }

    enum CodingKeys: String, CodingKey, CaseIterable {
        case customer
        case productID = "product_id"
        case quantity
        case price
        case currency
        case device
    }

    var request: OrderRequest {
        get throws {
            guard currency.map({ $0.utf8.count == 3 && $0.allSatisfy { $0.isASCII && $0.isLetter } }) ?? true else {
                throw Problem(.invalid, "The body's currency is not an ISO 4217 code of three letters, like USD.")
            }
            return OrderRequest(
                customer: customer, productID: ProductID(productID), quantity: quantity?.count ?? 1,
                priceMilliunits: price?.count, currency: currency?.uppercased(), device: device)
        }
    }
}

extension Order {
    /// The order as routes report it.
    var json: JSONValue {
        [
            "order_id": .string(id),
            "customer": .string(customer),
            "product_id": .string(productID.text),
            "quantity": .integer(Int64(quantity)),
            "environment": .optional(environment?.rawValue),
            "state": .string(state.rawValue),
            "cause": .string(cause),
            "created_at": .string(createdAt.iso8601),
            "expires_at": .string(expiresAt.iso8601),
            "paid_at": .optional(paidAt?.iso8601),
            "transaction_id": .optional(transactionID),
            "delivery_ids": .array(deliveryIDs.map { .string($0) }),
        ]
    }
}
