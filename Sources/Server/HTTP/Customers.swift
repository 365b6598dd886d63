import Foundation
import Hummingbird
import JSON
import Subscriptions
import Tracking

/// `GET /v1/apps/{bundle}/customers/{id}`: a customer's subscriptions, purchases and balances, past, present and future.
/// `GET /v1/apps/{bundle}/customers`, `/subscriptions` and `/receipts`: everything that an app has, page by page. A page
/// continues after the last row of the page before, so that rows that come meanwhile move no others.
struct CustomerRoutes: Sendable {
    /// The default and the largest number of rows of a page.
    static let rowsUsual: Int64 = 100
    static let rowsMax: Int64 = 1_000

    let tracker: Tracker
    let apps: KnownApps

    func addRoutes(to routes: KeyedRoutes) {
        routes.ofApp(needing: .read).get("/v1/apps/{bundle}/customers/{id}", use: customer)
        routes.ofApp(needing: .read, query: ["prefix", "after", "limit"])
            .get("/v1/apps/{bundle}/customers", use: customers)
        routes.ofApp(needing: .read, query: ["environment", "state", "product_id", "after", "limit"])
            .get("/v1/apps/{bundle}/subscriptions", use: subscriptions)
        routes.ofApp(needing: .read, query: ["customer", "after", "limit"])
            .get("/v1/apps/{bundle}/receipts", use: receipts)
    }

    private func customer(_: Request, _ context: AppContext) async throws -> Response {
        let customer = try context.parameters.decoded("id")
        try Upload.requireValidCustomerID(customer)
        let terms = try await apps.require(context.bundleID)
        let now = Instant.now
        let record = try await tracker.ledger.customers.record(of: customer, app: context.bundleID)
        return Response([
            "app": .string(context.bundleID.text),
            "customer": .string(customer),
            "subscriptions": .array(record.subscriptions.map { .object($0.members($0.freshness(now: now, terms))) }),
            "purchases": .array(record.purchases.map(\.json)),
            "balances": .array(record.balances.map(\.json)),
            "timeline": .array(record.timeline.map(\.json)),
            "unverified_receipts": [
                "count": .integer(record.unverifiedReceipts),
                "provisional_until": .optional(record.provisionalUntil?.iso8601),
            ],
        ])
    }

    private func customers(_ request: Request, _ context: AppContext) async throws -> Response {
        try await apps.require(context.bundleID)
        let limit = try request.rows
        let found = try await tracker.ledger.customers.list(
            of: context.bundleID, after: try request.name("after") ?? "", prefix: try request.name("prefix") ?? "",
            limit: limit)
        let next = found.count == limit ? found.last?.name : nil
        return Response(["customers": .array(found.map(\.json)), "next": .optional(next)])
    }

    private func subscriptions(_ request: Request, _ context: AppContext) async throws -> Response {
        let terms = try await apps.require(context.bundleID)
        let limit = try request.rows
        let page = try await tracker.ledger.customers.listSubscriptions(
            of: context.bundleID, environment: try request.word("environment", StoreEnvironment.self),
            state: try request.word("state", State.self),
            productID: try request.name("product_id").map { ProductID($0) },
            after: try request.name("after").map(SubscriptionPlace.init(cursor:)), limit: limit)
        let now = Instant.now
        return Response([
            "subscriptions": .array(page.subscriptions.map { $0.json($0.subscription.freshness(now: now, terms)) }),
            "next": .optional(page.next?.cursor),
        ])
    }

    private func receipts(_ request: Request, _ context: AppContext) async throws -> Response {
        try await apps.require(context.bundleID)
        let limit = try request.rows
        let found = try await tracker.ledger.customers.listReceipts(
            of: context.bundleID, customer: try request.name("customer"),
            before: try request.number("after", from: 1, upTo: .max) ?? .max, limit: limit)
        let next = found.count == limit ? found.last?.id.description : nil
        return Response(["receipts": .array(found.map(\.json)), "next": .optional(next)])
    }
}

extension Instant {
    fileprivate static var now: Instant { Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000)) }
}

extension OwnedSubscription {
    fileprivate func members(_ freshness: Freshness) -> [String: JSONValue] {
        [
            "environment": .string(environment.rawValue),
            "original_transaction_id": .string(id.text),
            "subscription_group_identifier": .optional(group),
            "product_id": .string(productID.text),
            "state": .string(state),
            "reason": .optional(reason),
            "entitled": .bool(entitled),
            "expires_at": .optional(expiresAt?.iso8601),
            "entitled_until": .optional(entitledUntil?.iso8601),
            "will_renew": .optional(willRenew),
            "renews_to_product_id": .optional(renewsTo?.text),
            "flags": .array(flags.map { .string($0) }),
            "periods": .integer(Int64(periods)),
            "started_at": .optional(startedAt?.iso8601),
            "plan": .optional(sale.plan),
            "payment_number": .optional(sale.paymentNumber.map { Int64($0) }),
            "payments": .optional(sale.payments.map { Int64($0) }),
            "commitment_ends_at": .optional(sale.termEndsAt?.iso8601),
            "next_payment": .optional(nextPayment),
            "seats": .optional(sale.seats.map { Int64($0) }),
            "as_of": .optional(asOf?.iso8601),
            "checked_at": .optional(checkedAt?.iso8601),
            "stale": .bool(freshness.isStale),
            "max_age_s": .optional(freshness.ageSecondsMax),
        ]
    }
}

extension OwnedPurchase {
    fileprivate var json: JSONValue {
        [
            "environment": .string(environment.rawValue),
            "transaction_id": .string(transactionID),
            "original_transaction_id": .string(originalTransactionID.text),
            "product_id": .string(productID.text),
            "quantity": .integer(Int64(quantity)),
            "purchased_at": .string(purchasedAt.iso8601),
            "revoked_at": .optional(revokedAt?.iso8601),
        ]
    }
}

extension PurchaseHistory.Balance {
    fileprivate var json: JSONValue {
        ["environment": .string(environment.rawValue), "credit": .string(credit), "units": .integer(units)]
    }
}

extension TimelineSpan {
    fileprivate var json: JSONValue {
        [
            "environment": .string(environment.rawValue),
            "original_transaction_id": .string(id.text),
            "from": .optional(from?.iso8601),
            "until": .optional(until?.iso8601),
            "state": .string(state),
            "reason": .optional(reason),
            "entitled": .bool(entitled),
            "product_id": .string(productID.text),
            "allowed_until": .optional(allowedUntil?.iso8601),
        ]
    }
}

extension Request {
    fileprivate var rows: Int {
        get throws { Int(try number("limit", from: 1, upTo: CustomerRoutes.rowsMax) ?? CustomerRoutes.rowsUsual) }
    }

    /// Returns a name of the query, or nil when it is absent. Throws a problem for one that no row can have.
    fileprivate func name(_ name: String) throws -> String? {
        guard let text = uri.queryParameters.get(name) else { return nil }
        guard (1...255).contains(text.unicodeScalars.count) else {
            throw Problem(.invalid, "The query's \(name) has 1 to 255 characters.")
        }
        return text
    }

    /// Returns a text of the query. Throws a problem when it is missing or empty.
    fileprivate func text(_ name: String) throws -> String {
        guard let text = uri.queryParameters.get(name), !text.isEmpty else {
            throw Problem(.invalid, "The query's \(name) is missing.")
        }
        return text
    }
}

extension SubscriptionPlace {
    /// Reads a cursor that an answer gave. Throws a problem for anything else.
    fileprivate init(cursor: String) throws {
        let parts = cursor.split(separator: ".", maxSplits: 1)
        guard parts.count == 2, let environment = StoreEnvironment(rawValue: String(parts[0])) else {
            throw Problem(.invalid, "The query's after is not the next of an earlier answer.")
        }
        self.init(environment, String(parts[1]))
    }

    fileprivate var cursor: String { "\(environment.rawValue).\(id)" }
}

extension ListedCustomer {
    fileprivate var json: JSONValue {
        ["customer": .string(name), "merged_into": .optional(mergedInto), "created_at": .string(createdAt.iso8601)]
    }
}

extension ListedSubscription {
    fileprivate func json(_ freshness: Freshness) -> JSONValue {
        .object(subscription.members(freshness).merging(["customer": .optional(customer)]) { own, _ in own })
    }
}

/// `POST` and `DELETE /v1/apps/{bundle}/customers/{id}/grants`: a manual grant of an entitlement, and its early end.
struct GrantRoutes: Sendable {
    private static let path: RouterPath = "/v1/apps/{bundle}/customers/{id}/grants"

    let ledger: SubscriptionLedger
    let apps: KnownApps
    let limits: ServerLimits

    func addRoutes(to routes: KeyedRoutes) {
        routes.ofApp(needing: .admin).post(Self.path, use: give)
        routes.ofApp(needing: .admin, query: ["entitlement", "actor", "reason"]).delete(Self.path, use: revoke)
    }

    private func give(_ request: Request, _ context: AppContext) async throws -> Response {
        let body = try await limits.json(GrantBody.self, of: request)
        let asked = try request.headers[.idempotencyKey].map { try GrantRequest(key: $0) }
        try await apps.require(context.bundleID)
        if body.force != true {
            try await ledger.apps.requireKnownEntitlement(
                body.entitlement, of: context.bundleID, orElse: "Send \"force\": true for a name to come.")
        }
        let given = try await ledger.acting(as: .key(context.key.id)).customers.give(
            body.entitlement, to: try context.parameters.decoded("id"), of: context.bundleID,
            until: try body.until.map { try Instant(asked: $0, as: "The body's until") },
            deciding: try ManualDecision(by: body.actor, because: body.reason), asked: asked)
        return Response(answer(context, given.grant), status: given.isNew ? .created : .ok)
    }

    private func revoke(_ request: Request, _ context: AppContext) async throws -> Response {
        let decision = try ManualDecision(by: try request.text("actor"), because: try request.text("reason"))
        let entitlement = try request.text("entitlement")
        try await apps.require(context.bundleID)
        let grant = try await ledger.acting(as: .key(context.key.id)).customers.revokeGrant(
            of: entitlement, from: try context.parameters.decoded("id"), of: context.bundleID, deciding: decision)
        return Response(answer(context, grant))
    }

    private func answer(_ context: AppContext, _ grant: ManualGrant) -> JSONValue {
        ["app": .string(context.bundleID.text), "grant": grant.json]
    }
}

private struct GrantBody: KnownFields {
    let entitlement: String
    /// When it ends, in ISO 8601. It has no end where this is absent or null.
    let until: String?
    let actor: String
    let reason: String
    /// Whether the entitlement may be one that no product of the app grants yet.
    let force: Bool?

    enum CodingKeys: CodingKey, CaseIterable { case entitlement, until, actor, reason, force }
}
