import Postgres
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

    @Test("An account lacks a role's rights as soon as it lacks one on a table or on a column")
    func lacking() async throws {
        try await withNewLedger { test in
            try await test.ledger.operations.grantRoles()
            try await acting(as: "perennial_api", on: test) { ledger, _ in
                let found = try await ledger.operations.examineDatabase()
                #expect(found.lacking.keys.sorted() == ["perennial_owner"])
                for lack in ["update (taken_up) on ledger.server_key", "delete on ledger.period"] {
                    try await test.run("REVOKE \(lack) FROM perennial_api")
                    #expect(try await ledger.operations.examineDatabase().lacking["perennial_worker"] == lack)
                }
            }
        }
    }
}
