import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

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
            // Each of thirty keys serves one of two customers. An order beyond twenty takes the place of an older one.
            #expect(refusals(of: "ann") == Array(repeating: .exists, count: 30))
            #expect(refusals(of: "full") == [])
            #expect(refusals(of: "new") == Array(repeating: .invalid, count: 5))
            let placed = outcomes.count - 35
            #expect(try await test.text("SELECT count(*) FROM ledger.purchase_order") == "\(placed)")
            let changes = "SELECT count(*) FROM ledger.order_change WHERE state ="
            #expect(try await test.text("\(changes) 'created'") == "\(placed)")
            let gone = try await test.text("SELECT count(*) FROM ledger.purchase_order WHERE state = 'cancelled'")
            #expect(try await test.text("\(changes) 'cancelled'") == gone)
            #expect(
                try await test.text(
                    """
                    SELECT max(n) FROM (
                        SELECT count(*) AS n FROM ledger.purchase_order WHERE state = 'created' GROUP BY customer_id) c
                    """) == "20")
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

    @Test("A repetition that comes at the same time gets the same answer, also where the order is paid at once")
    func repeatedTogether() async throws {
        try await withLedger(connections: 6) { test in
            try await test.sellDeliverables()
            for round in 0..<8 {
                try await test.buys("p\(round)", by: "ann\(round)")
                let ledger = try test.sealed
                let request = orderRequest(by: "ann\(round)")
                let states = try await withThrowingTaskGroup(of: OrderState.self) { group in
                    for _ in 0..<4 {
                        group.addTask {
                            try await Task.sleep(for: .milliseconds(Int.random(in: 0..<8)))
                            return try await ledger.orders.place(
                                request, of: test.app.bundleID, requestKey: "round \(round)"
                            ).state
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(Set(states).count == 1, "round \(round): \(states)")
            }
        }
    }

    @Test("A repetition after the order was cancelled gets the first answer, whatever was bought that fits it not")
    func repeatedAfterCancel() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", quantity: 2)
            let ledger = try test.sealed
            func place() async throws -> PlacedOrder {
                try await ledger.orders.place(orderRequest(), of: test.app.bundleID, requestKey: "key")
            }
            let order = try await place()
            #expect(order.state == .created)
            _ = try await ledger.orders.cancel(order.id, of: test.app.bundleID)
            #expect(try await place().state == .created)
        }
    }

    /// Fifty orders of fifty customers, placed by the function itself, as the first caller of a new database does.
    private static let fifty = """
        SELECT count(*) AS orders FROM generate_series(1, 50) AS n, LATERAL ledger.place_orders(
            ARRAY['com.example.app'], ARRAY['c' || n], ARRAY['coins'], ARRAY[1], ARRAY[NULL::bigint], ARRAY[NULL::text],
            ARRAY[NULL::bytea], ARRAY['k' || n], ARRAY['\\x01'::bytea], ARRAY[gen_random_uuid()],
            ARRAY[gen_random_uuid()], ARRAY['\\x01'::bytea], interval '1 day', 20)
        """

    @Test("Where PostgreSQL takes the tables to be empty, an order looks at the orders of its customer alone")
    func plannedWhileEmpty() async throws {
        try await withNewLedger { test in
            try await test.sellDeliverables()
            for table in ["purchase_order", "order_request"] {
                try await test.database.runOutsideTransaction("VACUUM ANALYZE ledger.\(table)")
            }
            let read = try await test.database.transaction { transaction in
                #expect(try transaction.query(.test(Self.fifty)).first?.int8("orders") == 50)
                return try transaction.query(
                    .test(
                        """
                        SELECT pg_stat_get_xact_tuples_returned(i.indexrelid) AS entries FROM pg_index i
                        WHERE i.indexrelid IN (
                            'ledger.purchase_order_open'::regclass, 'ledger.purchase_order_open_of_customer'::regclass)
                        """)
                ).map { try $0.int8("entries") }
            }
            #expect(read == [0, 0], "index entries of other customers' orders")
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
