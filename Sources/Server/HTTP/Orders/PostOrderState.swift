import Hummingbird
import Ledger
import Subscriptions

/// `POST /v1/orders/{id}/state`: a device reports where its payment is. It has no API key; a proof made with the order's
/// key shows that the report is about the order.
struct PostOrderState: Sendable {
    /// The largest body, in bytes.
    static let bodyBytesMax = 1024 * 1024
    /// The calls about one order: 10 a minute.
    static let orderRate = RequestRate(perSecond: 10.0 / 60, burst: 10)
    /// The calls of one address: 60 a minute.
    static let addressRate = RequestRate(perSecond: 1, burst: 60)

    private let ledger: SubscriptionLedger
    private let limits: ServerLimits
    private let orders = RateLimiter<String>()
    private let addresses = RateLimiter<SourceAddress>()

    init(ledger: SubscriptionLedger, limits: ServerLimits) {
        self.ledger = ledger
        var limits = limits
        limits.bodyBytesMax = min(limits.bodyBytesMax, Self.bodyBytesMax)
        self.limits = limits
    }

    func addRoute(to routes: some RouterMethods<CallerContext>) {
        routes.post("/v1/orders/{id}/state") { request, context in
            let id = try context.parameters.decoded("id")
            try admit(id, from: context.source(of: request))
            let body = try await limits.json(StateBody.self, of: request)
            guard let state = OrderState(rawValue: body.state) else {
                throw Problem(.invalid, "The body's state is purchasing, deferred, cancelled or failed.")
            }
            guard let now = try await ledger.orders.report(state, code: body.code, of: id, proof: body.proof) else {
                throw Problem(.proofRefused, "No order of this id has a key that makes this proof.")
            }
            return Response(["order_id": .string(id), "state": .string(now.rawValue)])
        }
    }

    private func admit(_ order: String, from address: SourceAddress) throws {
        let waits = [
            addresses.secondsToWait(of: address, at: Self.addressRate),
            orders.secondsToWait(of: order, at: Self.orderRate),
        ]
        guard let seconds = waits.compactMap(\.self).max() else { return }
        throw Problem(
            .tooMany, "A device calls at most 10 times a minute about an order.",
            headers: [.retryAfter: String(Int(seconds.rounded(.up)))])
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
