import Postgres
import TestSupport
import Testing

@testable import Ledger

@Suite("A session that saw the queue empty reads no other deliveries later")
struct QueuePlanTests {
    /// Purchase 1 has 400 due deliveries and purchase 2 one, number 401.
    private static let queue = """
        SET LOCAL session_replication_role = replica;
        INSERT INTO ledger.delivery (
            app_id, environment, customer_id, product_id, kind, turn, reason, purchase_id, transaction_id,
            original_transaction_id)
        SELECT 1, 'Production', 1, 'themes', 'non_consumable', 2 * n - 1, 'purchase', CASE WHEN n < 401 THEN 1 ELSE 2 END, n, n
        FROM generate_series(1, 401) AS n ORDER BY n;
        INSERT INTO ledger.due_delivery (app_id, environment, delivery_id)
        SELECT app_id, environment, delivery_id FROM ledger.delivery;
        """

    /// Statements about purchase 2 and its delivery, in the order of its life.
    private static let calls = [
        "SELECT ledger.mark_due(ARRAY[2]::bigint[], '{}')", "SELECT ledger.store_turns(ARRAY[2]::bigint[], '{}')",
        "SELECT ledger.acknowledge_unchanged('com.example.app', ARRAY[401]::bigint[], 'key 1')",
        "SELECT ledger.settle_deliveries(1, ARRAY[401]::bigint[], 'key 1', NULL)",
    ]

    /// The rows and index entries of deliveries and of the queue that this transaction read so far.
    private static let entries = Statement.test(
        """
        SELECT sum(pg_stat_get_xact_tuples_returned(c.oid))::bigint AS entries FROM pg_class c
        WHERE c.oid IN ('ledger.delivery'::regclass, 'ledger.due_delivery'::regclass)
           OR c.oid IN (SELECT i.indexrelid FROM pg_index i
                        WHERE i.indrelid IN ('ledger.delivery'::regclass, 'ledger.due_delivery'::regclass))
        """)

    @Test("Marking, storing turns, acknowledging and settling one delivery read a few entries of four hundred")
    func plannedWhileEmpty() async throws {
        try await withLedger { test in
            for table in ["delivery", "due_delivery"] {
                try await test.database.runOutsideTransaction("VACUUM ANALYZE ledger.\(table)")
            }
            try await test.database.transaction { transaction in
                for call in Self.calls { try transaction.script(call) }
                try transaction.script(Self.queue)
                for call in Self.calls {
                    let before = try transaction.query(Self.entries)[0].int8("entries")
                    try transaction.script(call)
                    let read = try transaction.query(Self.entries)[0].int8("entries") - before
                    #expect(read < 20, "\(call) read \(read)")
                }
                try transaction.script("SELECT ledger.place_deliveries(1000)")
                let read = try transaction.query(Self.entries)[0].int8("entries")
                #expect(read < 4_000, "places for 401 read \(read)")
            }
        }
    }
}
