import Foundation
import Postgres
import SQL
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// A ledger with many customers. The tests only read.
private let filled: OncePerSuite<TestLedger> = OncePerSuite { lend in
    try await withNewLedger { test in
        try await LookupPlanTests.fill(test)
        try await lend(test)
    }
}

@Suite("A lookup goes by keys, however many others there are", filled)
struct LookupPlanTests {
    /// Customers beside the one who is asked about.
    private static let others = 3_000

    /// Pages of 8 kB one lookup may look at.
    private static let pagesMax = 200

    fileprivate static func fill(_ test: TestLedger) async throws {
        try await test.run(
            """
            INSERT INTO ledger.customer (app_id, name) SELECT 1, 'c' || n FROM generate_series(1, \(others)) n;
            INSERT INTO ledger.subscription
                (app_id, environment, original_transaction_id, version, as_of, checked_at, recorded_at)
            SELECT 1, 'Production', 's' || n, 1, now(), now(), now() FROM generate_series(1, \(others)) n;
            INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
            SELECT subscription_id, valid, '[2020-01-01,)', state::ledger.state, reason::ledger.reason, entitled, 'monthly', 1
            FROM ledger.subscription
            CROSS JOIN (VALUES (tstzrange('2020-01-01', now() + interval '9 days'), 'active', NULL, true),
                               (tstzrange(now() + interval '9 days', NULL), 'expired', 'voluntary', false))
                AS t(valid, state, reason, entitled);
            INSERT INTO ledger.ownership (subscription_id, customer_id, valid, known)
            SELECT s.subscription_id, c.customer_id, '(,)', '[2020-01-01,)'
            FROM ledger.subscription s JOIN ledger.customer c ON c.name = 'c' || substr(s.original_transaction_id, 2);
            INSERT INTO ledger.manual_grant (customer_id, entitlement, valid, known, given_by, reason)
            SELECT customer_id, 'pro', '[2020-01-01,)', '[2020-01-01,)', 'kim', 'x' FROM ledger.customer;
            INSERT INTO ledger.receipt (app_id, digest, data)
            SELECT 1, sha256(n::text::bytea), 'x' FROM generate_series(1, \(others)) n;
            INSERT INTO ledger.receipt_subscription (receipt_id, subscription_id)
            SELECT r.receipt_id, s.subscription_id
            FROM ledger.receipt r JOIN ledger.subscription s ON s.subscription_id % 1000 = r.receipt_id % 1000;
            ANALYZE;
            """)
    }

    private func plan(_ explain: String, _ sql: String, in test: TestLedger) async throws -> [String] {
        try await test.database.transaction { transaction in
            try transaction.script("SET LOCAL enable_seqscan = off")
            // The first ones fill the session's memory of what the tables are like.
            for _ in 0..<3 { try transaction.query(.test("EXPLAIN (\(explain)) \(sql)")) }
            return try transaction.query(.test("EXPLAIN (\(explain)) \(sql)")).map { try $0.text("QUERY PLAN") }
        }
    }

    /// A statement with literals in the place of its parameters.
    private func statement(_ file: SQLFile, _ values: [String]) -> String {
        let sql = values.enumerated().reduce(file.text) { sql, value in
            sql.replacingOccurrences(of: "$\(value.offset + 1)", with: value.element)
        }
        return sql.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: " ")
    }

    @Test("Every table is found by an index")
    func indexes() async throws {
        try await filled.use { test in
            let lines = try await plan(
                "COSTS OFF", "SELECT * FROM ledger.entitlement_spans(ARRAY[7, 8]::bigint[], now(), now(), 'infinity')",
                in: test)
            #expect(lines.contains { $0.contains("subscription_span") }, "the functions were not looked into: \(lines)")
            #expect(lines.filter { $0.contains("Seq Scan") } == [])
        }
    }

    @Test("A lookup calls no function that PostgreSQL would plan anew each time")
    func plannedOnce() async throws {
        try await filled.use { test in
            let called = try await test.database.transaction { transaction in
                // With `all` PostgreSQL counts the calls of those functions in SQL that it did not inline.
                try transaction.script("SET LOCAL track_functions = 'all'")
                try transaction.query(.test("SELECT * FROM ledger.entitlements(ARRAY[7]::bigint[], NULL, NULL)"))
                return try transaction.query(
                    .test(
                        """
                        SELECT concat_ws(' ', l.lanname, f.funcname) AS called
                        FROM pg_stat_xact_user_functions f
                        JOIN pg_proc p ON p.oid = f.funcid JOIN pg_language l ON l.oid = p.prolang
                        """)
                ).map { try $0.text("called") }
            }
            #expect(called.contains("plpgsql entitlement_sources"), "\(called)")
            #expect(called.filter { $0.hasPrefix("sql ") } == [])
        }
    }

    @Test("What a receipt holds is found from the receipt")
    func receipts() async throws {
        try await filled.use { test in
            let values = ["NULL", "NULL", "7", "1"]
            let lines = try await plan("COSTS OFF", statement(Queries.findReceipts, values), in: test)
            #expect(lines.contains { $0.contains("receipt_subscription_of_receipt") }, "\(lines)")
        }
    }

    @Test("What counts for what a customer is offered is found by keys")
    func offers() async throws {
        try await filled.use { test in
            let values = ["'com.example.app'", "'c7'", "'x'", "10"]
            let lines = try await plan("COSTS OFF", statement(Queries.readBuyer, values), in: test)
            for index in ["ownership_of_customer", "subscription_pkey", "period_of_subscription"] {
                #expect(lines.contains { $0.contains(index) }, "\(index): \(lines)")
            }
            #expect(lines.filter { $0.contains("Seq Scan") } == [])
        }
    }

    @Test("A list of a rare state looks at so many subscriptions a page, and leads on to the rest")
    func lists() async throws {
        try await filled.use { test in
            func page(
                _ state: State?, productID: ProductID? = nil, after: SubscriptionPlace? = nil
            ) async throws -> SubscriptionListPage {
                try await test.ledger.customers.listSubscriptions(
                    of: test.app.bundleID, state: state, productID: productID, after: after, limit: 10)
            }
            let first = try await page(.expired)
            #expect(first.subscriptions.isEmpty)
            let place = try #require(first.next)
            let order = "SELECT original_transaction_id FROM ledger.subscription ORDER BY 1 OFFSET 1999 LIMIT 1"
            #expect(try await test.text(order) == place.id)
            let second = try await page(.expired, after: place)
            #expect(second.subscriptions.isEmpty && second.next == nil)
            let active = try await page(.active, productID: "monthly")
            #expect(
                active.subscriptions.count == 10 && active.next?.id == active.subscriptions.last?.subscription.id.text)
            #expect(try await page(nil, productID: "yearly").subscriptions.isEmpty)
            let values = ["'com.example.app'", "'Production'", "''", "'Sandbox'", "10", "'expired'", "NULL", "2000"]
            let lines = try await plan("COSTS OFF", statement(Queries.listSubscriptions, values), in: test)
            #expect(lines.contains { $0.contains("subscription_natural_key") }, "\(lines)")
            #expect(lines.filter { $0.contains("Seq Scan") } == [])
        }
    }

    @Test("Customers are listed by their beginnings, up to the last character that there is")
    func customers() async throws {
        try await withLedger { test in
            let last = "\u{10FFFF}"
            let longest = String(repeating: last, count: 255)
            let names = ["ann", "anna", "ann\(last)", "ann\(last)\(last)", "bob", last, longest]
            try await test.run(
                "INSERT INTO ledger.customer (app_id, name) "
                    + "SELECT \(test.app.id), unnest(ARRAY['\(names.joined(separator: "','"))'])")
            for prefix in ["", "ann", "ann\(last)", "b", last, "x"] {
                let listed = try await test.ledger.customers.list(of: test.app.bundleID, prefix: prefix, limit: 10)
                let expected = names.filter { $0.utf8.starts(with: prefix.utf8) }
                #expect(listed.map(\.name) == expected, "\(prefix.debugDescription)")
            }
        }
        try await filled.use { test in
            let values = ["'com.example.app'", "''", "'c7'", "10"]
            let lines = try await plan("COSTS OFF", statement(Queries.listCustomers, values), in: test)
            let condition = try #require(lines.first { $0.contains("Index Cond") && $0.contains("name") }, "\(lines)")
            #expect(condition.contains("~>=~") && condition.contains("~<~"), "\(lines)")
        }
    }

    @Test("One lookup looks at a few pages of them")
    func pages() async throws {
        try await filled.use { test in
            let sql = "SELECT * FROM perennial.entitled_at('com.example.app', 'c7', 'monthly', now())"
            let lines = try await plan("ANALYZE, BUFFERS, TIMING OFF", sql, in: test)
            let first = try #require(lines.first { $0.contains("Buffers: ") })
            let pages = first.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }.reduce(0, +)
            #expect((1...Self.pagesMax).contains(pages), "\(lines)")
            #expect(
                try await test.entitled("monthly", "c7") == [true, "monthly", "active", nil, "Production", "verified"])
        }
    }
}
