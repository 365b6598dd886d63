import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `GET /v1/apps/{bundle}/deliveries`: the queue after a position, in order. It waits for new deliveries for a while when
/// there are none.
struct GetDeliveries: Sendable {
    /// The default and the largest number of deliveries of a page.
    static let deliveriesMax: Int64 = 1_000
    /// How long a caller may wait, in seconds: shorter than the timeout of any proxy.
    static let waitSecondsMax: Int64 = 30
    /// How often a waiting request looks for new deliveries, in milliseconds.
    static let lookMilliseconds = 200

    let ledger: SubscriptionLedger
    let apps: KnownApps

    func addRoute(to routes: RouterGroup<KeyContext>) {
        let names = ["state", "customer", "environment", "after", "limit", "wait"]
        routes.ofApp(needing: .read, query: names).get("/v1/apps/{bundle}/deliveries") { request, context in
            _ = try await apps.require(context.bundleID)
            let filter = try request.deliveryFilter
            let after = try request.number("after", from: 0, upTo: .max) ?? 0
            let limit = try request.number("limit", from: 1, upTo: Self.deliveriesMax) ?? Self.deliveriesMax
            let wait = try request.number("wait", from: 0, upTo: Self.waitSecondsMax) ?? 0
            let end = ContinuousClock.now + .seconds(wait)
            var page = try await ledger.deliveries.read(
                of: context.bundleID, filter, after: after, limit: Int(limit))
            while page.deliveries.isEmpty, ContinuousClock.now < end, !isStopping() {
                try await Task.sleep(for: .milliseconds(Self.lookMilliseconds))
                page = try await ledger.deliveries.read(
                    of: context.bundleID, filter, after: after, limit: Int(limit))
            }
            return Response([
                "deliveries": .array(page.deliveries.map(\.json)), "next": .integer(page.next),
                "more": .bool(page.more),
            ])
        }
    }
}

extension Request {
    /// What the query asks for: every state, every customer and production, unless it says otherwise.
    fileprivate var deliveryFilter: DeliveryFilter {
        get throws {
            DeliveryFilter(
                state: try word("state", Delivery.State.self), customer: uri.queryParameters.get("customer"),
                environment: try word("environment", StoreEnvironment.self) ?? .production)
        }
    }
}

extension Request {
    /// Returns a word of the query, or nil when it is absent. Throws a problem for a word that is not one of the known.
    func word<Word: RawRepresentable<String> & CaseIterable>(_ name: String, _ type: Word.Type) throws -> Word? {
        guard let text = uri.queryParameters.get(name) else { return nil }
        guard let word = Word(rawValue: text) else {
            let known = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw Problem(.invalid, "The query's \(name) is not one of \(known).")
        }
        return word
    }
}

extension Delivery {
    /// The delivery as the queue reports it.
    var json: JSONValue {
        [
            "delivery_id": .string("\(id)"),
            "position": position.map { .integer($0) } ?? .null,
            "customer": .string(customer),
            "environment": .string(environment.rawValue),
            "product_id": .string(productID.text),
            "kind": .string(kind.rawValue),
            "credit": .optional(credit),
            "units": units.map { .integer($0) } ?? .null,
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
