import Postgres
import SQL
import Subscriptions
import Testing

@testable import Tracking

@Suite("Statements read by index, not whole tables")
struct PlanTests {
    @Test("A claim finds what is due by the index, also among many receipts")
    func claim() async throws {
        try await withNewLedger { test in
            try await test.run(
                """
                INSERT INTO ledger.receipt (app_id, digest, data)
                SELECT \(test.app.id), sha256(i::text::bytea), 'x' FROM generate_series(1, 20000) i;
                INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
                SELECT receipt_id, app_id, ('{new,expiring,retry}'::ledger.lane[])[1 + receipt_id % 3], at, at
                FROM ledger.receipt, LATERAL (SELECT now() + (receipt_id - 500) * interval '1 s' AS at) t;
                ANALYZE ledger.receipt, ledger.poll_schedule;
                """)
            let parameters: [Parameter] = [
                .int4(test.worker.number), .float8(60), .int4s([test.app.id, test.app.id]), .texts(["new", "retry"]),
                .int4s([50, 50]), .instant(nil), .instant(nil), .instants([nil, nil]), .texts([nil, nil]),
            ]
            let plan = try await explain(test, Queries.claim.text, parameters)
            #expect(plan.contains("Index Scan using poll_schedule_due"), "\(plan)")
            let claims = try await test.ledger.claims.claim(
                for: test.worker, [Quota(app: test.app, lane: .new, receipts: 500)], leaseSeconds: 60)
            #expect((160...170).contains(claims.count))
        }
    }

    @Test("A lookup of one customer reads no table as a whole")
    func lookup() async throws {
        try await withNewLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            try await test.run(
                """
                INSERT INTO ledger.customer (app_id, name) SELECT \(test.app.id), 'c' || i FROM generate_series(1, 20000) i;
                INSERT INTO ledger.subscription (app_id, environment, original_transaction_id, version, as_of, checked_at, recorded_at)
                SELECT \(test.app.id), 'Production', 'many' || i, 1, now(), now(), now() FROM generate_series(1, 20000) i;
                INSERT INTO ledger.ownership (subscription_id, customer_id, valid, known)
                SELECT s.subscription_id, c.customer_id, tstzrange(NULL, NULL), tstzrange(now(), NULL)
                FROM ledger.subscription s JOIN ledger.customer c ON c.name = 'c' || substr(s.original_transaction_id, 5)
                WHERE s.original_transaction_id LIKE 'many%';
                INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, entitled, product_id, version)
                SELECT subscription_id, tstzrange(now(), NULL), tstzrange(now(), NULL), 'active', true, 'monthly', 1
                FROM ledger.subscription WHERE original_transaction_id LIKE 'many%';
                ANALYZE;
                """)
            // The body of the function, for EXPLAIN does not look into functions.
            let plan = try await explain(
                test,
                """
                SELECT * FROM ledger.entitlement_spans(ARRAY[$1::bigint], now(), now(), 'infinity')
                """, [.int8(77)])
            for table in ["subscription", "subscription_span", "ownership"] {
                #expect(!plan.contains("Seq Scan on \(table) "), "\(plan)")
            }
            #expect(plan.contains("ownership_of_customer"), "the lookup does not begin with the customer: \(plan)")
            let generic = try await test.database.transaction { transaction in
                try transaction.script(
                    """
                    SET LOCAL plan_cache_mode = force_generic_plan;
                    PREPARE lookup (bigint, timestamptz) AS
                    SELECT * FROM ledger.entitlement_spans(ARRAY[$1], $2, $2, 'infinity')
                    """)
                return try transaction.query(.test("EXPLAIN ANALYZE EXECUTE lookup (77, now())"))
                    .map { try $0.text("QUERY PLAN") }.joined(separator: "\n")
            }
            let read = generic.matches(of: /actual time=\S+ rows=(\d+)/).compactMap { Int($0.1) }
            #expect(read.count > 10 && read.allSatisfy { $0 < 10 }, "others' rows were read: \(generic)")
        }
    }

    /// What the line sends all day, and tables so small that reading them as a whole is right.
    private static let hot = [
        Queries.claim, Queries.claimOne, Queries.confirm, Queries.countDue, Queries.deletePeriods,
        Queries.extendObservations, Queries.findDigests, Queries.insertAliases, Queries.insertEvents,
        Queries.insertObservations, Queries.insertPurchases, Queries.insertReceipts, Queries.insertRefusals,
        Queries.insertSpans, Queries.insertSubscriptions, Queries.keepReceipts, Queries.linkReceipts,
        Queries.foldClocks,
        Queries.forgetFingerprints, Queries.lockPurchases, Queries.lockSchedules, Queries.lockSubscriptions,
        Queries.readIncidents, Queries.readOwners, Queries.readPeriods, Queries.findPollers,
        Queries.readReceipts, Queries.readSpans, Queries.readUploads, Queries.release, Queries.cover,
        Queries.reschedule, Queries.retire, Queries.settleUploads, Queries.storeUploads, Queries.writePeriods,
        Queries.writePurchases,
        Queries.writeReceipts, Queries.writeSubscriptions,
    ]
    private static let small: Set = ["app", "app_budget", "apple_breaker", "secret_trial"]

    @Test("No statement of the line needs to read a large table as a whole")
    func indexes() async throws {
        try await withNewLedger { test in
            for query in Self.hot {
                let plan = try await genericPlan(test, query)
                let whole = plan.matches(of: /Seq Scan on (\w+)/).map { String($0.1) }
                #expect(Set(whole).subtracting(Self.small).isEmpty, "\(query.name): \(plan)")
            }
        }
    }

    /// A null for each parameter of a statement, as EXECUTE takes them.
    static func nulls(for statement: String) -> String {
        let count = (1...30).last { statement.contains("$\($0)::") } ?? 0
        return count == 0 ? "" : "(\(Array(repeating: "NULL", count: count).joined(separator: ", ")))"
    }

    /// The plan for parameters that are not known, by indexes wherever there is one.
    private func genericPlan(_ test: TestLedger, _ query: SQLFile) async throws -> String {
        return try await test.database.transaction { transaction in
            try transaction.script(
                "SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan; PREPARE q AS "
                    + query.text)
            let rows = try transaction.query(.test("EXPLAIN EXECUTE q\(Self.nulls(for: query.text)) -- \(query.name)"))
            try transaction.script("DEALLOCATE q")
            return try rows.map { try $0.text("QUERY PLAN") }.joined(separator: "\n")
        }
    }

    private func explain(_ test: TestLedger, _ sql: String, _ parameters: [Parameter]) async throws -> String {
        try await test.database.transaction { transaction in
            try transaction.query(.test("EXPLAIN " + sql), parameters).map { try $0.text("QUERY PLAN") }
                .joined(separator: "\n")
        }
    }
}
