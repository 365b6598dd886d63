import Hummingbird
import Ledger
import Subscriptions

/// `POST …/deliveries/{id}:ack`, `…/deliveries:ack` and `…/deliveries/{id}:skip`: a service says what it carried out, and
/// a person says what needs no carrying out.
struct DeliveryRoutes: Sendable {
    let ledger: SubscriptionLedger
    let apps: KnownApps
    let limits: ServerLimits

    func addRoutes(to routes: RouterGroup<KeyContext>) {
        let path = "/v1/apps/{bundle}/deliveries"
        routes.ofApp(needing: .write).post(RouterPath(path + ":ack"), use: acknowledgeMany)
        routes.ofApp(needing: .write).post(RouterPath(path + "/{id}:ack"), use: acknowledge)
        routes.ofApp(needing: .admin).post(RouterPath(path + "/{id}:skip"), use: skip)
    }

    private func acknowledge(_ request: Request, _ context: AppContext) async throws -> Response {
        _ = try await limits.json(NoFields.self, of: request)
        _ = try await apps.require(context.bundleID)
        let id = try context.parameters.decoded("id")
        guard let number = Int64(id),
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
        _ = try await apps.require(context.bundleID)
        // What is no number is no delivery either.
        let results = try await deliveries(context).acknowledge(
            ids.map { Int64($0.text) ?? 0 }, of: context.bundleID)
        return Response([
            "results": .array(
                zip(ids, results).map { id, result in
                    [
                        "delivery_id": .string(id.text), "state": .string(result.state?.rawValue ?? "unknown"),
                        "first": .bool(result.isFirst),
                    ]
                })
        ])
    }

    private func skip(_ request: Request, _ context: AppContext) async throws -> Response {
        let body = try await limits.json(SkipBody.self, of: request)
        _ = try await apps.require(context.bundleID)
        let id = try context.parameters.decoded("id")
        guard let number = Int64(id) else { throw Problem(.notFound, "\(context.bundleID) has no delivery \(id).") }
        let result = try await deliveries(context).skip(number, of: context.bundleID, because: body.reason)
        return Response([
            "delivery_id": .string(id), "state": .string(result.state?.rawValue ?? ""), "first": .bool(result.isFirst),
        ])
    }

    private func deliveries(_ context: AppContext) -> LedgerDeliveries {
        ledger.acting(as: .key(context.key.id)).deliveries
    }
}

/// The body of a call that says nothing: `{}`.
struct NoFields: KnownFields {
    enum CodingKeys: CodingKey, CaseIterable {}
}

/// The body of many acknowledgements.
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

    enum CodingKeys: CodingKey, CaseIterable {
        case ids
    }
}

/// The body of a skip.
private struct SkipBody: KnownFields {
    let reason: String

    enum CodingKeys: CodingKey, CaseIterable {
        case reason
    }
}
