import Foundation
import Postgres
import TestSupport
import Testing

@testable import Tracking

@Suite("Each role has the rights that its statements need")
struct RightsTests {
    /// The statements of commands that people run as `perennial_owner`, or as the owner of the database.
    private static let ofCommands: Set = [
        "add_app", "change_catalog", "create_key", "delete_aliases", "delete_audit", "delete_observations",
        "delete_products", "delete_support_calls", "drop_empty_months", "end_grants", "erase_customers",
        "erase_orders", "erase_tokens", "erase_uploads", "insert_corrections", "insert_grants",
        "lock_catalog", "lock_migrations", "record_migration", "record_terms", "remove_app",
        "remove_offer_key", "remove_server_key", "renew_feed", "replace_offers", "revoke_key",
        "rotate_secret", "set_app", "set_notification_digest", "skip_erased", "store_offer_key",
        "store_server_key", "upsert_products",
    ]
    /// The statements that only a server runs, and doctor's for those who may read offer keys.
    private static let ofServers: Set = [
        "answer_support_call", "close_session", "end_manual_grants", "find_key", "find_session",
        "insert_grant_request", "insert_manual_grant", "insert_support_call", "insert_webhook", "merge_names",
        "merge_uploads", "open_session", "read_keys", "read_offer_key", "read_sealed_offer_keys",
        "remove_webhook", "repeat_support_call", "split_name",
    ]

    @Test(
        "Worker and server may run every statement in sql/queries but those of others, so a new one needs its rights",
        arguments: [("perennial_worker", ofCommands.union(ofServers)), ("perennial_api", ofCommands)])
    func statements(role: String, others: Set<String>) async throws {
        try await withNewLedger { test in
            try await test.run("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA ledger, perennial FROM PUBLIC")
            try await test.ledger.operations.grantRoles()
            let statements = try UnanalysedTests.statements()
            #expect(statements.count > 250)
            try await acting(as: role, on: test) { _, database in
                var refused: Set<String> = []
                for (name, text) in statements {
                    do {
                        // An explanation asks for the rights of the statement that it explains.
                        try await database.transaction { transaction in
                            try transaction.script("PREPARE role_\(name) AS \(text)")
                            try transaction.query(
                                .test("EXPLAIN EXECUTE role_\(name)\(PlanTests.nulls(for: text))"))
                        }
                    } catch let error as DatabaseError where error.sqlState == "42501" {
                        refused.insert(name)
                    }
                }
                #expect(refused.subtracting(others).sorted() == [], "\(role) lacks a right")
                #expect(others.subtracting(refused).sorted() == [], "\(role) may run what is of others")
            }
        }
    }

    /// Every right that a role has by a grant of its own, in a table, column, sequence, function or schema.
    private static let granted = """
        SELECT lower(a.privilege_type) || COALESCE(' (' || h.col || ')', '') || ' on ' || h.name AS right
        FROM pg_namespace n
        CROSS JOIN LATERAL (
            SELECT n.nspacl AS acl, NULL AS col, 'schema ' || n.nspname AS name
            UNION ALL
            SELECT c.relacl, NULL, c.oid::regclass::text FROM pg_class c
            WHERE c.relnamespace = n.oid AND NOT c.relispartition
            UNION ALL
            SELECT c.attacl, c.attname, c.attrelid::regclass::text FROM pg_attribute c
            WHERE c.attrelid IN (SELECT r.oid FROM pg_class r WHERE r.relnamespace = n.oid) AND NOT c.attisdropped
            UNION ALL
            SELECT f.proacl, NULL, n.nspname || '.' || f.proname FROM pg_proc f WHERE f.pronamespace = n.oid) h
        CROSS JOIN aclexplode(h.acl) a
        WHERE n.nspname IN ('ledger', 'perennial') AND a.grantee = '%'::regrole
        """

    @Test(
        "An account without any right lacks exactly those that its role was granted, and a migration grants all again",
        arguments: ["perennial_owner", "perennial_worker", "perennial_api", "perennial_report"])
    func lacking(role: String) async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            let granted = Set(try await test.rows(Self.granted.replacingOccurrences(of: "%", with: role)))
            #expect(granted.contains("usage on schema ledger") && granted.count > 150)
            try await acting(as: role, on: test) { ledger, _ in
                func lacking() async throws -> [String] {
                    let held = try await ledger.operations.examineRights().first { $0.name == role }
                    return try #require(held).lacking
                }
                #expect(try await lacking() == [])
                for things in ["ALL TABLES IN SCHEMA", "ALL SEQUENCES IN SCHEMA", "ALL FUNCTIONS IN SCHEMA", "SCHEMA"] {
                    try await test.run("REVOKE ALL ON \(things) ledger, perennial FROM PUBLIC, \(role)")
                }
                let found = try await lacking()
                #expect(Set(found) == granted && found.first == "usage on schema ledger")
                try await test.ledger.operations.grantRoles()
                #expect(try await lacking() == [])
            }
        }
    }

    @Test(
        "An account lacks a role's rights as soon as it lacks one",
        arguments: [
            "select on ledger.api_key", "insert on ledger.receipt", "update (taken_up) on ledger.server_key",
            "delete on ledger.period", "usage on schema ledger", "usage on ledger.lease_token_seq",
        ])
    func one(right: String) async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            try await acting(as: "perennial_api", on: test) { ledger, _ in
                try await test.run("REVOKE \(right) FROM perennial_api")
                let own = try await ledger.operations.examineRights().filter(\.isMember)
                #expect(own == [HeldRole(name: "perennial_api", isMember: true, lacking: [right])])
            }
        }
    }

    @Test("An upload whose answer may not be settled waits, and the log says which right is missing")
    func upload() async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            try await test.run("REVOKE INSERT ON ledger.subscription FROM perennial_api")
            try await acting(as: "perennial_api", on: test) { ledger, _ in
                let journal = Journal()
                let tracker = Tracker(
                    ledger: ledger, appStore: .answering(Sample.verified()), options: TrackerOptions(),
                    logger: journal.logger)
                let answer = try await tracker.submit(
                    Submission(bundleID: test.app.bundleID, customer: "kim", receipt: Sample.receipt(1)))
                if case .settled = answer { Issue.record("\(answer)") }
                let warnings = journal.lines.filter { $0.hasPrefix("warning could not check an uploaded receipt") }
                #expect(warnings.count == 1 && warnings[0].contains("permission denied for table subscription"))
            }
        }
    }

    @Test("A database without the schema names no role")
    func beforeMigration() async throws {
        try await withTestDatabase { database, _ in
            let found = try await SubscriptionLedger(database: database).operations.examineRights()
            #expect(found == [])
        }
    }
}
