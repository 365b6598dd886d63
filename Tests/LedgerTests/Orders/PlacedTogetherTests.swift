import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Ledger

@Suite("Orders that arrive together are placed by one statement")
struct PlacedTogetherTests {
    private typealias Outcome = (customer: String, order: Result<PlacedOrder, LedgerError>)

    @Test("Orders that arrive together are placed, recalled or refused each for itself")
    func together() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let asked =
                (0..<60).map { (request: orderRequest(by: "ann\($0 % 2)"), key: "of a pair \($0 / 2)") }
                + (0..<30).map { (request: orderRequest(by: "full"), key: "full \($0)") }
                + (0..<10).map {
                    (request: orderRequest($0 % 2 == 0 ? "unknown" : "coins", by: "new \($0)"), key: "\($0)")
                }
            let outcomes = try await outcomes(of: asked, in: test)
            func refusals(of customers: String) -> [LedgerError.Kind] {
                outcomes.filter { $0.0.hasPrefix(customers) }.compactMap { outcome in
                    if case .failure(let error) = outcome.1 { error.kind } else { nil }
                }
            }
            // Each of thirty keys serves one of two customers, who have room for twenty orders each.
            let pairs = refusals(of: "ann")
            #expect(pairs.count >= 30 && pairs.allSatisfy { $0 == .exists || $0 == .exhausted(retryAfterSeconds: 60) })
            #expect(refusals(of: "full") == Array(repeating: .exhausted(retryAfterSeconds: 60), count: 10))
            #expect(refusals(of: "new") == Array(repeating: .invalid, count: 5))
            let placed = outcomes.count - pairs.count - 15
            #expect(try await test.text("SELECT count(*) FROM ledger.purchase_order") == "\(placed)")
            #expect(try await test.text("SELECT count(*) FROM ledger.order_change") == "\(placed)")
            #expect(
                try await test.text(
                    "SELECT max(n) FROM (SELECT count(*) AS n FROM ledger.purchase_order GROUP BY customer_id) c")
                    == "20")
        }
    }

    @Test("What a customer owns takes no room among the open orders")
    func owned() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("t", "themes")
            let asked = (0..<60).map { (request: orderRequest("themes"), key: "\($0)") }
            let states = try await outcomes(of: asked, in: test).map { try $0.order.get().state }
            #expect(states == Array(repeating: .delivered, count: 60))
        }
    }

    @Test("Where PostgreSQL takes the tables to be empty, an order looks at the orders of its customer alone")
    func plannedWhileEmpty() async throws {
        try await withLedger { test in
            for table in ["purchase_order", "order_request"] {
                try await test.database.runOutsideTransaction("VACUUM ANALYZE ledger.\(table)")
            }
            let plans = try await test.database.transaction { transaction in
                try transaction.script("SET LOCAL enable_seqscan = off")
                return try [
                    "SELECT count(*) FROM ledger.purchase_order o WHERE o.customer_id = 1 AND o.state IN ('created', 'purchasing', 'deferred')",
                    "SELECT o.order_id FROM ledger.purchase_order o WHERE o.state IN ('created', 'purchasing', 'deferred') AND o.expires_at <= now() ORDER BY o.expires_at LIMIT 9",
                ].map { query in
                    try transaction.query(.test("EXPLAIN (COSTS OFF) \(query)")).map { try $0.text("QUERY PLAN") }
                        .joined(separator: "\n")
                }
            }
            #expect(plans[0].contains("purchase_order_open_of_customer"), "\(plans[0])")
            #expect(plans[1].contains("purchase_order_open "), "\(plans[1])")
        }
    }

    private func outcomes(
        of asked: [(request: OrderRequest, key: String)], in test: TestLedger
    ) async throws -> [Outcome] {
        let orders = (try test.sealed).orders
        return try await withThrowingTaskGroup(of: Outcome.self) { group in
            for (request, key) in asked {
                group.addTask {
                    do {
                        let order = try await orders.place(request, of: test.app.bundleID, requestKey: key)
                        return (request.customer, .success(order))
                    } catch let error as LedgerError {
                        return (request.customer, .failure(error))
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }
}
