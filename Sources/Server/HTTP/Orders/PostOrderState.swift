import Hummingbird
import Ledger
import Subscriptions

/// `POST /v1/orders/{id}/state`: a device reports where its payment is.
struct PostOrderState: Sendable {
    let ledger: SubscriptionLedger
    let calls: DeviceCalls

    func addRoute(to routes: some RouterMethods<CallerContext>) {
        routes.post("/v1/orders/{id}/state") { request, context in
            let id = try context.parameters.decoded("id")
            let body = try await calls.body(StateBody.self, of: request, about: id, context)
            guard let state = OrderState(rawValue: body.state) else {
                throw Problem(.invalid, "The body's state is purchasing, deferred, cancelled or failed.")
            }
            guard let now = try await ledger.orders.report(state, code: body.code, of: id, proof: body.proof) else {
                throw DeviceCalls.refused
            }
            return Response(["order_id": .string(id), "state": .string(now.rawValue)])
        }
    }
}

/// The body of a report.
private struct StateBody: KnownFields {
    let state: String
    /// An error code of StoreKit, for example.
    let code: String?
    let proof: String

    enum CodingKeys: CodingKey, CaseIterable {
        case state, code, proof
    }
}
