import Postgres
import SQL
import TestSupport
import Testing

@testable import Ledger

@Suite("Owners who only pointed at what they own are marked as such")
struct PointerMigrationTests {
    /// Purchases 1 to 6, each with the receipts that customer 1 sent of it: form, and whether verifyReceipt vouched.
    private static let earlier = """
        SET LOCAL session_replication_role = replica;
        INSERT INTO ledger.receipt (receipt_id, app_id, digest, data, form, vouched, transaction_id)
            OVERRIDING SYSTEM VALUE
        VALUES (1, 1, sha256('1'), '', 'transaction_id', false, '1'), (2, 1, sha256('2'), '', 'signed_transaction', false, '2'),
               (3, 1, sha256('3'), '', 'receipt', true, NULL), (4, 1, sha256('4'), '', 'receipt', false, NULL);
        INSERT INTO ledger.upload (receipt_id, customer_id, imported)
        SELECT r.receipt_id, 1, false FROM ledger.receipt r
        UNION ALL SELECT 3, 2, false;
        INSERT INTO ledger.receipt_purchase (purchase_id, receipt_id) VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 1), (5, 3), (6, 1);
        INSERT INTO ledger.receipt_subscription (subscription_id, receipt_id) VALUES (7, 1), (8, 1), (8, 2);
        INSERT INTO ledger.ownership (purchase_id, subscription_id, customer_id, cause, valid, known)
        SELECT CASE WHEN n < 7 THEN n END, CASE WHEN n >= 7 THEN n END, 1,
               CASE n WHEN 4 THEN 'import' WHEN 6 THEN 'assignment' ELSE 'upload' END, tstzrange(NULL, NULL), tstzrange(now(), NULL)
        FROM generate_series(1, 8) AS n;
        """

    @Test("Those whose uploads of it were all pointers, unless a person assigned it")
    func marked() async throws {
        try await withTestDatabase { database, _ in
            let (before, after) = (
                Migrations.all.prefix { $0.name < "0048" }, Migrations.all.drop { $0.name < "0048" }
            )
            try await database.transaction { transaction in
                try transaction.script(Queries.lockMigrations.text)
                for migration in before { try transaction.script(migration.text) }
                try transaction.script(Self.earlier)
                for migration in after { try transaction.script(migration.text) }
            }
            let causes = try await database.query(
                .test("SELECT cause FROM ledger.ownership ORDER BY COALESCE(purchase_id, subscription_id)"))
            #expect(
                try causes.map { try $0.text("cause") }
                    == ["pointer", "upload", "upload", "pointer", "upload", "assignment", "pointer", "upload"])
        }
    }
}
