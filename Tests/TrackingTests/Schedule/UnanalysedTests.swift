import Foundation
import Postgres
import SQL
import Subscriptions
import Testing

@testable import Tracking

/// A new installation plans its statements while its tables are empty, keeps those plans, and fills the tables: until the
/// first analysis no plan may lean on a part of a key that thousands of rows share.
@Suite("What was never analysed is found by its whole key")
struct UnanalysedTests {
    /// The most rows and entries of indexes that a statement about fifty things may read. An app has 20,000 of each.
    private static let readMax: Int64 = 5_000
    /// Statements that go through what is due, up to a number, two that may read a table once for all that they are about, and
    /// one that goes on until it found a hundred receipts that verifyReceipt vouched for, of which there are none here.
    private static let excepted = [
        "count_due", "overdue", "status", "gauge_lanes", "mark_omissions", "read_held", "find_probe_receipts",
    ]

    @Test("No statement of the hot path reads what others of its app have, planned for empty or unanalysed tables")
    func neverAnalysed() async throws {
        try await withNewLedger { test in
            let long = try await test.database.transaction { transaction in
                try transaction.script("\(QueryPlanTests.unguarded); SET LOCAL plan_cache_mode = force_generic_plan")
                for (number, pinned) in QueryPlanTests.pinned.enumerated() {
                    try transaction.script("PREPARE pinned\(number) AS \(pinned.file.text)")
                    try transaction.query(.test("EXPLAIN EXECUTE pinned\(number)(\(pinned.arguments))"))
                }
                try transaction.script("\(QueryPlanTests.population); SAVEPOINT filled")
                let planned = try Self.long(in: transaction)
                try transaction.script("ROLLBACK TO filled; SET LOCAL plan_cache_mode = force_custom_plan")
                return try planned + Self.long(in: transaction)
            }
            #expect(long == [])
        }
    }

    /// The prepared statements that read too much, with their plans.
    private static func long(in transaction: Transaction) throws -> [String] {
        var long: [String] = []
        for (number, pinned) in QueryPlanTests.pinned.enumerated() where !excepted.contains(pinned.file.name) {
            let before = try read(in: transaction)
            let plan = try transaction.query(
                .test("EXPLAIN (ANALYZE, COSTS OFF) EXECUTE pinned\(number)(\(pinned.arguments))"))
            let entries = try read(in: transaction) - before
            let lines = try plan.map { try $0.text("QUERY PLAN") }.joined(separator: "\n")
            if entries > readMax { long.append("\(pinned.file.name) reads \(entries):\n\(lines)") }
        }
        return long
    }

    /// How many rows and entries of indexes of the ledger this transaction has read.
    private static func read(in transaction: Transaction) throws -> Int64 {
        try transaction.query(
            .test(
                """
                SELECT sum(pg_stat_get_xact_tuples_returned(c.oid))::bigint AS entries FROM pg_class c
                WHERE c.relnamespace = 'ledger'::regnamespace AND c.relkind IN ('r', 'i')
                """)
        )[0].int8("entries")
    }

    @Test("No statement reads a whole table for a question about one row, planned while the tables are empty")
    func oneRow() async throws {
        try await withNewLedger { test in
            let plans = try await test.database.transaction { transaction in
                try transaction.script("SET LOCAL plan_cache_mode = force_generic_plan")
                return try Self.statements().map { name, text in
                    let nulls = PlanTests.nulls(for: text)
                    try transaction.script("PREPARE planned AS \(text)")
                    let rows = try transaction.query(.test("EXPLAIN (VERBOSE, COSTS OFF) EXECUTE planned\(nulls)"))
                    try transaction.script("DEALLOCATE planned")
                    return (name: name, lines: try rows.map { try $0.text("QUERY PLAN") })
                }
            }
            #expect(plans.count > 250)
            for plan in plans {
                // An erasure asks once which support calls are about what the customer owned.
                let mayHash = plan.name == "erase_tokens"
                #expect(
                    Self.hashedTables(in: plan.lines).isEmpty != mayHash, "\(plan.name): add OFFSET 0 to the subquery")
            }
        }
    }

    /// The statements in sql/queries that can be prepared, with their names.
    static func statements() throws -> [(name: String, text: String)] {
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try FileManager.default.contentsOfDirectory(
            at: root.appending(path: "sql/queries"), includingPropertiesForKeys: nil
        ).flatMap { file in
            try String(contentsOf: file, encoding: .utf8).split(separator: "-- name: ").dropFirst().map { section in
                let end = section.firstIndex(of: "\n") ?? section.endIndex
                return (name: String(section[..<end]), text: String(section[end...]))
            }
        }.filter { !["hold_snapshot", "create_roles", "grant_roles"].contains($0.name) }
    }

    /// The tables that a plan reads from end to end, into memory, to ask whether one row is there.
    private static func hashedTables(in plan: [String]) -> [String] {
        let hashed = Set(plan.flatMap { $0.matches(of: /hashed (SubPlan \d+)/).map { String($0.1) } })
        return plan.indices.filter { hashed.contains(plan[$0].trimmingCharacters(in: .whitespaces)) }.flatMap { start in
            let depth = plan[start].prefix { $0 == " " }.count
            return plan[(start + 1)...].prefix { $0.prefix { $0 == " " }.count > depth }
                .compactMap { $0.firstMatch(of: /Seq Scan on ledger\.(\w+)/).map { String($0.1) } }
        }
    }

    @Test("A purchase is found among those of a new product without reading the others")
    func ofNewProduct() async throws {
        try await withNewLedger { test in
            let read = try await test.database.transaction { transaction in
                try transaction.script(
                    """
                    INSERT INTO ledger.purchase (app_id, environment, original_transaction_id, product_id)
                    SELECT \(test.app.id), 'Production', n, 'new' FROM generate_series(1, 1000) n
                    """)
                let found = try transaction.query(
                    Queries.lockPurchases,
                    [
                        .int4s([test.app.id]), .texts(["Production"]), .texts(["77"]), .texts(["new"]), .int8s([]),
                        .int8s([]),
                    ])
                #expect(found.count == 1)
                return try transaction.query(
                    .test("SELECT pg_stat_get_xact_tuples_returned('ledger.purchase_of_product'::regclass) AS entries")
                ).map { try $0.int8("entries") }
            }
            #expect(read == [0], "entries of the product's other purchases")
        }
    }
}
