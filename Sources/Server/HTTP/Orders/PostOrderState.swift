import Hummingbird
import Ledger
import Subscriptions

/// `POST /v1/orders/{id}/state`: a device reports where its payment is.
struct PostOrderState: Sendable {
    let ledger: SubscriptionLedger
    let calls: DeviceCalls

    func addRoute(to routes: some RouterMethods<CallerContext>) {
        routes.post("/v1/orders/{id}/state") { request, context in
            let spelling = try context.parameters.decoded("id")
            let id = LedgerOrders.canonical(spelling) ?? spelling
            let body = try await calls.body(StateBody.self, of: request, about: id, context) { body in
                try await ledger.orders.accepts(
                    OrderProof(of: spelling, state: body.known, stateCode: body.code, code: body.proof))
            }
            let (state, code) = (try body.known, body.code)
            guard let now = try await ledger.orders.report(state, code: code, of: spelling, proof: body.proof) else {
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

    /// The reported state. Throws a problem for a word that is none, and for a state that no device reports.
    var known: OrderState {
        get throws {
            switch OrderState(rawValue: state) {
            case .purchasing?: .purchasing
            case .deferred?: .deferred
            case .cancelled?: .cancelled
            case .failed?: .failed
            case .created?, .paid?, .delivered?, .expired?, .refunded?, nil:
                throw Problem(.invalid, "The body's state is purchasing, deferred, cancelled or failed.")
            }
        }
    }

    enum CodingKeys: CodingKey, CaseIterable {
        case state, code, proof
    }
}
