import Postgres
import SQL
import TestSupport
import Testing

@testable import Ledger

@Suite("What was taken for facts stays, and Apple is asked for whole answers about it")
struct EvidenceMigrationTests {
    /// An app with a server key, whose receipts poll a running and an ended subscription, and one that trusts notifications.
    private static let earlier = """
        SET LOCAL session_replication_role = replica;
        INSERT INTO ledger.app (bundle_id, name, sweep) VALUES ('com.example.shop', 'Shop', 'normal'), ('b', 'B', 'auto');
        INSERT INTO ledger.server_key (app_id, key_id, issuer_id, sealed_key) VALUES (1, 'K1', 'i', '');
        INSERT INTO ledger.receipt (app_id, digest, data, history_revision, reads_whole)
        SELECT r.app_id, sha256(r.revision::bytea), '', r.revision, true
        FROM (VALUES (1, 'r1'), (1, 'r2'), (2, 'r3')) AS r(app_id, revision);
        INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, fingerprint, meaning, polled,
            equal_until, confirmed_as_of, confirmed_at, swept_at)
        SELECT receipt_id, app_id, 'sweep', now() + interval '30 days', now() + interval '30 days', '1', '1', '{}',
            'infinity', now(), now(), now() FROM ledger.receipt;
        INSERT INTO ledger.subscription (app_id, environment, original_transaction_id, polled_by, access_ends_at)
        SELECT s.app_id, 'Production', s.id, s.receipt, now() + s.days * interval '1 day'
        FROM (VALUES (1, 'ended', 1, -9), (1, 'runs', 2, 9), (2, 'other', 3, 9)) AS s(app_id, id, receipt, days);
        INSERT INTO ledger.notification (app_id, received_at, version, kind, environment, original_transaction_id,
            signed_at, effect, texts, apply_at, check_at)
        SELECT n.app_id, now(), 2, 'REFUND', 'Production', n.subject, n.signed_at, n.effect, n.texts,
            CASE WHEN n.effect = 'awaits_whole' THEN now() END, CASE WHEN n.effect = 'pulled' THEN now() END
        FROM (VALUES
            (1, 'runs', now(), 'applied', ''::bytea), (2, 'other', now(), 'awaits_whole', ''),
            (2, 'unknown', now(), 'unjoined', ''), (1, 'runs', NULL, 'uploaded', NULL), (1, 'runs', NULL, 'pulled', NULL)
        ) AS n(app_id, subject, signed_at, effect, texts);
        """

    @Test("Waiting notifications become reasons to ask, histories are read again over a week, the running ones first")
    func migrated() async throws {
        try await withTestDatabase { database, _ in
            try await database.transaction { transaction in
                try transaction.script(Queries.lockMigrations.text)
                for migration in Migrations.all.prefix(while: { $0.name < "0042" }) {
                    try transaction.script(migration.text)
                }
                try transaction.script(Self.earlier)
            }
            try await database.transaction { transaction in
                for migration in Migrations.all.drop(while: { $0.name < "0042" }) {
                    try transaction.script(migration.text)
                }
            }
            func lines(_ sql: String) async throws -> [String] {
                try await database.query(.test(sql)).map { try $0.text("line") }
            }
            let effects = try await lines("SELECT effect AS line FROM ledger.notification ORDER BY notification_id")
            #expect(effects == ["stated", "asked", "unpolled", "pulled", "pulled"])
            let schedules = try await lines(
                """
                SELECT concat_ws(' ', s.receipt_id, round(extract(epoch FROM s.due_at - now()) / 86400), s.follow_ups,
                                 s.fingerprint IS NULL, r.history_revision) AS line
                FROM ledger.poll_schedule s JOIN ledger.receipt r USING (receipt_id) ORDER BY s.receipt_id
                """)
            #expect(schedules == ["1 7 0 t", "2 0 0 t", "3 0 4 t r3"])
            #expect(try await lines("SELECT sweep AS line FROM ledger.app ORDER BY app_id") == ["normal", "relaxed"])
        }
    }
}
