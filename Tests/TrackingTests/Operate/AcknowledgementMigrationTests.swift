import Postgres
import SQL
import TestSupport
import Testing

@testable import Tracking

@Suite("Deliveries keep their state when acknowledgements get a table of their own")
struct AcknowledgementMigrationTests {
    /// Deliveries as programs of before stored them; 201 and 203 were acknowledged by one call, and 206 has no position.
    private static let earlier = """
        SET LOCAL session_replication_role = replica;
        INSERT INTO ledger.app (bundle_id, name) VALUES ('com.example.shop', 'Shop');
        INSERT INTO ledger.delivery (
            delivery_id, position, app_id, environment, customer_id, product_id, kind, turn, reason, order_id, purchase_id,
            transaction_id, original_transaction_id, state, settled_at, settled_by, skip_reason, changed_since)
            OVERRIDING SYSTEM VALUE
        SELECT d.id, d.position, 1, 'Production', 1, 'themes', 'non_consumable', 1, 'purchase', d.order_id::uuid, d.id,
               d.id, d.id, d.state::ledger.delivery_state, d.settled_at::timestamptz, d.settled_by, d.why, d.changed_since
        FROM (VALUES
            (201, 1, NULL, 'acknowledged', '2026-03-01 00:00:00.2Z', 'key 1', NULL, false),
            (203, 3, NULL, 'acknowledged', '2026-03-01 00:00:00.7Z', 'key 1', NULL, true),
            (202, 2, NULL, 'skipped', '2026-03-02Z', 'kim', 'a test', false),
            (204, 4, '00000000-0000-4000-8000-000000000001', 'due', NULL, NULL, NULL, false),
            (205, 5, NULL, 'due', NULL, NULL, NULL, true),
            (206, NULL, NULL, 'due', NULL, NULL, NULL, false),
            (207, 7, NULL, 'due', NULL, NULL, NULL, false),
            (301, 6, NULL, 'acknowledged', '2026-03-03Z', 'key 2', NULL, false)
        ) AS d(id, position, order_id, state, settled_at, settled_by, why, changed_since);
        INSERT INTO ledger.due_delivery (app_id, environment, position, delivery_id)
        SELECT app_id, environment, position, delivery_id FROM ledger.delivery WHERE state = 'due' AND position > 0;
        """

    @Test("What was due, acknowledged and skipped is so afterwards, and the queue has all that is due")
    func kept() async throws {
        try await withTestDatabase { database, _ in
            let (before, after) = (
                Migrations.all.prefix { $0.name < "0035" }, Migrations.all.drop { $0.name < "0035" }
            )
            try await database.transaction { transaction in
                try transaction.script(Queries.lockMigrations.text)
                for migration in before { try transaction.script(migration.text) }
                try transaction.script(Self.earlier)
            }
            // A program of before acknowledges a delivery while the migration begins.
            let migration = try await database.transaction { transaction in
                try transaction.script("SELECT ledger.settle_deliveries(1, ARRAY[207]::bigint[], 'key 3', NULL)")
                let migration = Task {
                    try await database.transaction { transaction in
                        for migration in after { try transaction.script(migration.text) }
                    }
                }
                try transaction.waitUntilAnotherIsBlocked()
                return migration
            }
            try await migration.value
            let today = try await lines("SELECT to_char(now() AT TIME ZONE 'UTC', 'DD') AS line", of: database)[0]
            let states = """
                SELECT concat_ws(' ', delivery_id, state, to_char(settled_at AT TIME ZONE 'UTC', 'DD'), settled_by) AS line
                FROM ledger.delivery_now ORDER BY delivery_id
                """
            #expect(
                try await lines(states, of: database) == [
                    "201 acknowledged 01 key 1", "202 skipped 02 kim", "203 acknowledged 01 key 1", "204 due",
                    "205 due",
                    "206 due", "207 acknowledged \(today) key 3", "301 acknowledged 03 key 2",
                ])
            let queue = """
                SELECT concat_ws(' ', delivery_id, position, order_id IS NOT NULL, changed_since) AS line
                FROM ledger.due_delivery ORDER BY delivery_id
                """
            #expect(try await lines(queue, of: database) == ["204 4 t f", "205 5 f t", "206 f f"])
            let calls =
                "SELECT array_to_string(delivery_ids, ' ') AS line FROM ledger.acknowledgement ORDER BY delivery_ids"
            #expect(try await lines(calls, of: database) == ["201 203", "207", "301"])
        }
    }

    private func lines(_ sql: String, of database: Database) async throws -> [String] {
        try await database.query(.test(sql)).map { try $0.text("line") }
    }
}
