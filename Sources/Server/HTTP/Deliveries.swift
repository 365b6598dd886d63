import Hummingbird
import JSON
import Subscriptions
import Tracking

/// `GET /v1/apps/{bundle}/deliveries`: the queue after a position, in order. It can wait for new deliveries.
/// `POST …/deliveries/{id}:ack`, `…/deliveries:ack` and `…/deliveries/{id}:skip`: a service says what it carried out, and
/// a person says what needs no carrying out.
struct DeliveryRoutes: Sendable {
    /// The default and the largest number of deliveries of a page.
    static let deliveriesMax: Int64 = 1_000
    /// How long a caller may wait, in seconds: shorter than the timeout of any proxy.
    static let waitSecondsMax: Int64 = 30
    /// How often a waiting request looks for new deliveries, in milliseconds.
    static let lookMilliseconds = 200

    let ledger: SubscriptionLedger
    let apps: KnownApps
    let limits: ServerLimits

    func addRoutes(to routes: KeyedRoutes) {
        let path = "/v1/apps/{bundle}/deliveries"
        routes.ofApp(needing: .read, query: ["state", "customer", "environment", "after", "limit", "wait"])
            .get(RouterPath(path), use: list)
        routes.ofApp(needing: .write).post(RouterPath(path + ":ack"), use: acknowledgeMany)
        routes.ofApp(needing: .write).post(RouterPath(path + "/{id}:ack"), use: acknowledge)
        routes.ofApp(needing: .admin).post(RouterPath(path + "/{id}:skip"), use: skip)
    }

    private func list(_ request: Request, _ context: AppContext) async throws -> Response {
        try await apps.require(context.bundleID)
        let state = try request.word("state", Delivery.State.self)
        let customer = request.uri.queryParameters.get("customer")
        let environment = try request.word("environment", StoreEnvironment.self) ?? .production
        let after = try request.number("after", from: 0, upTo: .max) ?? 0
        let limit = try request.number("limit", from: 1, upTo: Self.deliveriesMax) ?? Self.deliveriesMax
        let wait = try request.number("wait", from: 0, upTo: Self.waitSecondsMax) ?? 0
        let end = ContinuousClock.now + .seconds(wait)
        while true {
            let page = try await ledger.deliveries.read(
                of: context.bundleID, state: state, customer: customer, environment: environment, after: after,
                limit: Int(limit))
            guard page.deliveries.isEmpty, ContinuousClock.now < end, !isStopping() else {
                return Response([
                    "deliveries": .array(page.deliveries.map(\.json)), "next": .integer(page.next),
                    "more": .bool(page.more),
                ])
            }
            try await Task.sleep(for: .milliseconds(Self.lookMilliseconds))
        }
    }

    private func acknowledge(_ request: Request, _ context: AppContext) async throws -> Response {
        _ = try await limits.json(NoFields.self, of: request)
        try await apps.require(context.bundleID)
        let id = try context.parameters.decoded("id")
        guard let number = Int64.ofDigits(id),
            let result = try await deliveries(context).acknowledge([number], of: context.bundleID).first,
            let state = result.state
        else { throw Problem(.notFound, "\(context.bundleID) has no delivery \(id).") }
        guard state == .acknowledged else {
            throw Problem(.conflict, "Delivery \(id) was skipped, so there is nothing to acknowledge.")
        }
        return Response([
            "delivery_id": .string(id), "state": .string(state.rawValue),
            "acknowledged_at": .optional(result.settledAt?.iso8601), "acknowledged_by": .optional(result.settledBy),
            "first": .bool(result.isFirst),
        ])
    }

    private func acknowledgeMany(_ request: Request, _ context: AppContext) async throws -> Response {
        let ids = try await limits.json(AcknowledgeBody.self, of: request).ids
        try await apps.require(context.bundleID)
        // What is no number is no delivery either.
        let numbers = ids.map { Int64.ofDigits($0.text) ?? 0 }
        let results = try await deliveries(context).acknowledge(numbers, of: context.bundleID)
        let answers: [JSONValue] = zip(ids, results).map { id, result in
            [
                "delivery_id": .string(id.text), "state": .string(result.state?.rawValue ?? "unknown"),
                "first": .bool(result.isFirst),
            ]
        }
        return Response(["results": .array(answers)])
    }

    private func skip(_ request: Request, _ context: AppContext) async throws -> Response {
        let body = try await limits.json(SkipBody.self, of: request)
        try await apps.require(context.bundleID)
        let id = try context.parameters.decoded("id")
        guard let number = Int64.ofDigits(id) else {
            throw Problem(.notFound, "\(context.bundleID) has no delivery \(id).")
        }
        let result = try await deliveries(context).skip(number, of: context.bundleID, because: body.reason)
        return Response([
            "delivery_id": .string(id), "state": .string(result.state?.rawValue ?? ""), "first": .bool(result.isFirst),
        ])
    }

    private func deliveries(_ context: AppContext) -> LedgerDeliveries {
        ledger.acting(as: .key(context.key.id)).deliveries
    }
}

extension Delivery {
    var json: JSONValue {
        [
            "delivery_id": .string("\(id)"),
            "position": .optional(position),
            "customer": .string(customer),
            "environment": .string(environment.rawValue),
            "product_id": .string(productID.text),
            "kind": .string(kind.rawValue),
            "credit": .optional(credit),
            "units": .optional(units),
            "turn": .integer(Int64(turn)),
            "reason": .string(reason),
            "order_id": .optional(orderID),
            "transaction_id": .string(transactionID.text),
            "original_transaction_id": .string(originalTransactionID.text),
            "state": .string(state.rawValue),
            "created_at": .string(createdAt.iso8601),
            "acknowledged_at": .optional(state == .acknowledged ? settledAt?.iso8601 : nil),
            "acknowledged_by": .optional(state == .acknowledged ? settledBy : nil),
        ]
    }
}

/// The body of a call that says nothing: `{}`.
struct NoFields: KnownFields {
    enum CodingKeys: CodingKey, CaseIterable {}
}

private struct AcknowledgeBody: KnownFields {
    /// A delivery's number, as text or as a number.
    struct ID: Decodable, Sendable {
        let text: String

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            text = try (try? container.decode(String.self)) ?? "\(container.number(in: 1...Int64.max))"
        }
    }

    let ids: [ID]

    enum CodingKeys: CodingKey, CaseIterable { case ids }
}

private struct SkipBody: KnownFields {
    let reason: String

    enum CodingKeys: CodingKey, CaseIterable { case reason }
}
