import Foundation
import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `GET /v1/apps/{bundle}/customers`, `/subscriptions` and `/receipts`: everything that an app has, page by page.
///
/// A page continues after the last row of the page before, so that rows that come meanwhile move no others.
struct ListRoutes: Sendable {
    /// The default number of rows of a page.
    static let rowsUsual: Int64 = 100
    /// The largest number of rows of a page.
    static let rowsMax: Int64 = 1_000

    let tracker: Tracker
    let apps: KnownApps

    func addRoutes(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .read, query: ["prefix", "after", "limit"])
            .get("/v1/apps/{bundle}/customers", use: customers)
        routes.ofApp(needing: .read, query: ["environment", "state", "product_id", "after", "limit"])
            .get("/v1/apps/{bundle}/subscriptions", use: subscriptions)
        routes.ofApp(needing: .read, query: ["customer", "after", "limit"])
            .get("/v1/apps/{bundle}/receipts", use: receipts)
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
        let terms = tracker.terms(of: try await apps.require(context.bundleID))
        let limit = try request.rows
        let filter = SubscriptionFilter(
            environment: try request.word("environment", StoreEnvironment.self),
            state: try request.word("state", State.self),
            productID: try request.name("product_id").map { ProductID($0) })
        let page = try await tracker.ledger.customers.listSubscriptions(
            of: context.bundleID, filter, after: try request.name("after").map(SubscriptionPlace.init(cursor:)),
            limit: limit)
        let now = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
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

extension Request {
    /// The number of rows that the query asks for.
    fileprivate var rows: Int {
        get throws {
            Int(try number("limit", from: 1, upTo: ListRoutes.rowsMax) ?? ListRoutes.rowsUsual)
        }
    }

    /// Returns a name of the query, or nil when it is absent. Throws a problem for one that no row can have.
    fileprivate func name(_ name: String) throws -> String? {
        guard let text = uri.queryParameters.get(name) else { return nil }
        guard (1...255).contains(text.unicodeScalars.count), !text.unicodeScalars.contains("\0") else {
            throw Problem(.invalid, "The query's \(name) has 1 to 255 characters, and no NUL.")
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

    /// The cursor of an answer.
    fileprivate var cursor: String { "\(environment.rawValue).\(id)" }
}

extension ListedCustomer {
    fileprivate var json: JSONValue {
        [
            "customer": .string(name), "merged_into": .optional(mergedInto),
            "created_at": .string(createdAt.iso8601),
        ]
    }
}

extension ListedSubscription {
    fileprivate func json(_ freshness: Freshness) -> JSONValue {
        .object(subscription.members(freshness).merging(["customer": .optional(customer)]) { own, _ in own })
    }
}
