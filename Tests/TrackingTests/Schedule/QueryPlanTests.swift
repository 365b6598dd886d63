import Postgres
import SQL
import Subscriptions
import Testing

@testable import Tracking

/// The statements of the hot path find their rows by an index, however large the tables are: pinned as PostgreSQL plans
/// them, both for known parameters and for any.
@Suite("The statements of the hot path keep their plans")
struct QueryPlanTests {
    /// Tables that grow with the number of customers.
    private static let large = [
        "receipt", "poll_schedule", "subscription", "subscription_span", "period", "upload", "customer", "ownership",
        "purchase", "receipt_subscription", "transaction_alias", "current_entitlements", "notification",
    ]

    /// Statements with arguments that mean something in the population below, and the indexes that they have to use.
    static let pinned: [(file: SQLFile, arguments: String, indexes: [String])] = [
        (
            Queries.claim,
            "1, 60, '{1,2}', '{sweep,sweep}', '{100,100}', NULL, NULL, '{NULL,NULL}', '{NULL,Production}'",
            ["poll_schedule_due", "receipt_pkey"]
        ),
        (
            Queries.claim,
            "1, 60, '{1}', '{sweep}', '{100}', NULL, NULL, ARRAY[now() - interval '1 hour'], '{Sandbox}'",
            ["poll_schedule_due", "poll_schedule_sandbox", "receipt_pkey"]
        ),
        (Queries.claimOne, "1, 60, 77", ["receipt_pkey"]),
        (Queries.countDue, "192, NULL, '{}', '{}', '{}'", ["poll_schedule_due", "poll_schedule_sandbox"]),
        (Queries.countDue, "192, NULL, '{1}', '{sweep}', ARRAY[now()]", ["poll_schedule_due"]),
        (Queries.overdue, "now() - interval '1 day', 60", ["poll_schedule_due"]),
        (Queries.status, "10000", ["poll_schedule_due", "poll_schedule_imported"]),
        (Queries.gaugeLanes, "10000", ["poll_schedule_due", "poll_schedule_imported"]),
        (Queries.release, "1, \(ids), \(ids), 5", ["poll_schedule_pkey"]),
        (Queries.lockSchedules, "\(ids)", ["poll_schedule_pkey"]),
        (
            Queries.reschedule,
            """
            1, \(ids), \(ids), \(times), \(lanes), \(small), \(bytes), \(bytes), \(texts), \(times), \(times), \(times), \
            \(flags), \(small)
            """,
            ["poll_schedule_pkey", "receipt_pkey"]
        ),
        (
            Queries.findPollers,
            """
            \(ids), \(ids), \(small), \(environments), \(texts), \(small), \(environments), \(texts), \(texts), '{}', '{}', \
            \(ids), \(ids)
            """,
            ["subscription_polled_by", "purchase_polled_by", "subscription_natural_key"]
        ),
        (Queries.cover, "\(ids), \(times), \(lanes), \(ids)", ["poll_schedule_pkey", "receipt_pkey"]),
        (Queries.retire, "1, \(ids), \(ids)", ["poll_schedule_pkey"]),
        (
            Queries.confirm, "1, \(ids), \(ids), \(bytes), \(bytes), \(times), \(times), \(lanes), \(times)",
            ["poll_schedule_pkey"]
        ),
        (Queries.foldClocks, "\(ids)", ["poll_schedule_pkey", "subscription_polled_by", "purchase_polled_by"]),
        (Queries.forgetFingerprints, "\(ids), \(ids)", ["poll_schedule_pkey"]),
        (
            Queries.storeVerifiedNotification,
            "1, 'DID_RENEW', NULL, 'u', 'Production', '77', now(), '', true, '77', NULL, 5, 60, 'monthly', 'w', now(), now()",
            ["subscription_natural_key", "purchase_natural_key", "poll_schedule_pkey", "receipt_pkey"]
        ),
        (
            Queries.findMissedPollers, "1, 'Production', '77'",
            ["subscription_natural_key", "purchase_natural_key", "poll_schedule_pkey"]
        ),
        (
            Queries.lockLineItems, "\(small), \(environments), \(items), \(items)",
            ["period_of_line_item", "subscription_natural_key"]
        ),
        (
            Queries.findLineItemHolders, "\(small), \(environments), \(items), \(items)",
            ["period_of_line_item", "transaction_alias_by_id", "subscription_pkey"]
        ),
        (Queries.readLinked, "\(ids)", ["receipt_subscription_of_receipt", "receipt_purchase_of_receipt"]),
        (
            Queries.readWaitingNotifications, "\(small), \(environments), \(items), 1000, \(ids)",
            ["purchase_natural_key", "receipt_digest_unique", "poll_schedule_pkey"]
        ),
        (Queries.markOmissions, "now(), \(ids), '{}', '{}', '{}', '{}', \(ids), \(ids)", ["subscription_pkey"]),
        (Queries.readSpans, "\(ids)", ["subscription_span_open"]),
        (
            Queries.findDigests, "\(small), \(bytes)",
            ["receipt_digest_unique"]
        ),
        (Queries.readHeld, "\(ids)", ["receipt_subscription_of_receipt", "receipt_purchase_of_receipt"]),
        (Queries.entitlements, "'{app.1,app.2}', '{c77,c78}', NULL, NULL", ["customer_name_"]),
        (
            Queries.currentEntitlements, "'{app.1,app.2}', '{c77,c78}'",
            ["customer_name_", "current_entitlements_pkey", "subscription_pkey", "purchase_pkey", "poll_schedule_pkey"]
        ),
        (Queries.lockAffectedCustomers, "\(ids), \(ids)", ["customer_pkey"]),
        (Queries.findOrderCustomers, "\(small), \(tokens)", ["customer_name_", "customer_pkey"]),
        (
            Queries.findProbeReceipts, "1, 3, NULL",
            ["subscription_natural_key", "receipt_subscription_pkey", "receipt_pkey"]
        ),
    ]

    private static let ids = array { "\($0)" }
    private static let items = array { "9\($0)" }
    private static let times = array { _ in "2026-01-01" }
    private static let small = array { _ in "1" }
    private static let lanes = array { _ in "sweep" }
    private static let bytes = array { #""\\x\#(String($0, radix: 16, uppercase: false).leftPadded)""# }
    private static let texts = array { _ in "NULL" }
    private static let tokens = array { "00000000-0000-4000-8000-0000000000\(10 + $0)" }

    private static let flags = array { _ in "true" }
    private static let environments = array { _ in "Production" }

    private static func array(_ element: (Int) -> String) -> String {
        "'{\((1...50).map(element).joined(separator: ","))}'"
    }

    @Test("The hot path reads no table from end to end, whether its parameters are known or not")
    func indexesOnly() async throws {
        try await withNewLedger { test in
            try await test.run("\(Self.unguarded); \(Self.population); ANALYZE")
            for mode in ["force_custom_plan", "force_generic_plan"] {
                for (number, pinned) in Self.pinned.enumerated() {
                    let plan = try await plan(test, pinned.file, pinned.arguments, mode: mode, number: number)
                    for table in Self.large {
                        #expect(
                            !plan.contains("Seq Scan on \(table) "),
                            "\(pinned.file.name) reads all of \(table) (\(mode)):\n\(plan)")
                    }
                    for index in pinned.indexes {
                        #expect(plan.contains(index), "\(pinned.file.name) does not use \(index) (\(mode)):\n\(plan)")
                    }
                }
            }
        }
    }

    private func plan(
        _ test: TestLedger, _ file: SQLFile, _ arguments: String, mode: String, number: Int
    ) async throws -> String {
        let text = file.text.trimmingSuffix(";")
        return try await test.database.transaction { transaction in
            try transaction.script("PREPARE pinned\(number) AS \(text); SET LOCAL plan_cache_mode = \(mode)")
            let rows = try transaction.query(.test("EXPLAIN (COSTS OFF) EXECUTE pinned\(number)(\(arguments))"))
            try transaction.script("DEALLOCATE pinned\(number)")
            return try rows.map { try $0.text("QUERY PLAN") + " " }.joined(separator: "\n")
        }
    }

    /// A hundred thousand receipts of five apps, each with a customer, a purchase and a subscription with two open spans. With
    /// far fewer it would be right to read a table from end to end. What keeps the rows sound is left out while they are
    /// made.
    static let population = """
        INSERT INTO ledger.app (bundle_id, name) SELECT 'app.' || g, 'app' FROM generate_series(1, 4) g;
        INSERT INTO ledger.app_budget (app_id) SELECT app_id FROM ledger.app ON CONFLICT DO NOTHING;
        INSERT INTO ledger.receipt (app_id, digest, data, environment, outcome, asked_at, verified_at)
        SELECT 1 + g % 5, sha256(int8send(g)), '\\x00', 'Production', 'verified', now(), now()
        FROM generate_series(1, 100000) g;
        INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
        SELECT receipt_id, app_id, 'sweep', due_at, due_at, receipt_id % 100 = 0 FROM ledger.receipt
        CROSS JOIN LATERAL (SELECT now() - receipt_id * interval '1 minute' AS due_at) d;
        INSERT INTO ledger.customer (app_id, name) SELECT app_id, 'c' || receipt_id FROM ledger.receipt;
        INSERT INTO ledger.upload (receipt_id, customer_id, imported)
        SELECT receipt_id, receipt_id, false FROM ledger.receipt;
        INSERT INTO ledger.subscription (
            app_id, environment, original_transaction_id, polled_by, version, as_of, checked_at, recorded_at)
        SELECT app_id, 'Production', 't' || receipt_id, receipt_id, 1, now(), now(), now() FROM ledger.receipt;
        INSERT INTO ledger.receipt_subscription SELECT polled_by, subscription_id FROM ledger.subscription;
        INSERT INTO ledger.period (
            subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial,
            is_intro, path, recorded_at)
        SELECT subscription_id, '9' || subscription_id, 'monthly', 1, now(), now() + interval '1 month', false, false, false,
               'latest_receipt_info[0]', now() FROM ledger.subscription;
        INSERT INTO ledger.transaction_alias (period_id, transaction_id) SELECT period_id, 'a' || period_id FROM ledger.period;
        INSERT INTO ledger.purchase (app_id, environment, original_transaction_id, product_id, polled_by)
        SELECT app_id, 'Production', 'p' || receipt_id, 'lifetime', receipt_id FROM ledger.receipt;
        INSERT INTO ledger.receipt_purchase SELECT purchase_id, purchase_id FROM ledger.purchase;
        INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
        SELECT subscription_id, tstzrange(now(), now() + interval '1 month'), tstzrange(now(), NULL), 'active'::ledger.state, NULL::ledger.reason, true,
               'monthly', 1 FROM ledger.subscription
        UNION ALL
        SELECT subscription_id, tstzrange(now() + interval '1 month', NULL), tstzrange(now(), NULL), 'expired'::ledger.state, 'voluntary'::ledger.reason,
               false, 'monthly', 1 FROM ledger.subscription;
        INSERT INTO ledger.ownership (subscription_id, customer_id, valid, known)
        SELECT subscription_id, polled_by, tstzrange(now(), NULL), tstzrange(now(), NULL) FROM ledger.subscription;
        INSERT INTO ledger.current_entitlements
            (customer_id, app_id, catalog_changed_at, computed_at, spans, subscriptions, purchases)
        SELECT c.customer_id, c.app_id, a.catalog_changed_at, now(), '{}', ARRAY[c.customer_id], ARRAY[c.customer_id]
        FROM ledger.customer c JOIN ledger.app a USING (app_id);
        INSERT INTO ledger.notification (
            app_id, received_at, version, kind, apple_id, environment, original_transaction_id, signed_at, effect,
            transaction_id, account_token)
        SELECT app_id, now(), 2, 'DID_RENEW', 'n' || receipt_id, 'Production', receipt_id, now(), 'applied', receipt_id,
               'a' || receipt_id FROM ledger.receipt;
        """

    /// Lets ``population`` be made without what keeps its rows sound.
    static let unguarded = """
        SET LOCAL session_replication_role = replica;
        ALTER TABLE ledger.subscription_span DROP CONSTRAINT subscription_span_says_one_thing;
        ALTER TABLE ledger.ownership DROP CONSTRAINT ownership_of_subscription_says_one_thing;
        """
}

extension String {
    /// With an even number of digits.
    fileprivate var leftPadded: String { count % 2 == 0 ? self : "0" + self }

    fileprivate func trimmingSuffix(_ suffix: Character) -> String {
        var text = self
        while let last = text.last, last.isWhitespace || last == suffix { text.removeLast() }
        return text
    }
}
