import Postgres
import SQL
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Migrations apply once, in order, and refuse a changed history")
struct MigrationTests {
    @Test("A second run applies nothing")
    func twice() async throws {
        try await withTestDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            await #expect(throws: LedgerError.self) { try await ledger.operations.requireMigrated() }
            #expect(try await ledger.operations.migrate().applied == Migrations.all.map(\.name))
            let again = try await ledger.operations.migrate()
            #expect(again.applied.isEmpty)
            #expect(again.total == Migrations.all.count)
            try await ledger.operations.requireMigrated()
        }
    }

    @Test("Many at once on an empty database: each migration is applied by one of them")
    func atOnce() async throws {
        try await withTestDatabase { _, connectionString in
            let applied = try await withThrowingTaskGroup(of: [String].self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
                        let report = try await SubscriptionLedger(database: database).operations.migrate()
                        await database.close()
                        return report.applied
                    }
                }
                return try await group.reduce([], +)
            }
            #expect(applied.sorted() == Migrations.all.map(\.name).sorted())
        }
    }

    @Test(
        "A changed history, an unknown migration and a missing one are refused, and nothing is changed",
        arguments: [
            ("UPDATE ledger.migration SET digest = '\\x00' WHERE number = 2", "Another version"),
            ("UPDATE ledger.migration SET name = 'other' WHERE number = 3", "migration other"),
            (
                """
                INSERT INTO ledger.migration (name, digest) VALUES ('9999_newer', '\\x00');
                UPDATE ledger.compatibility SET program_min = 9999
                """, "run a newer perennial"
            ),
        ])
    func refused(change: String, reason: String) async throws {
        try await withLedger { test in
            try await test.run(change)
            let before = try await test.everything()
            for attempt in [
                { _ = try await test.ledger.operations.migrate() },
                { try await test.ledger.operations.requireMigrated() },
            ] {
                let error = await #expect(throws: LedgerError.self) { try await attempt() }
                #expect(error?.kind == .mismatch)
                #expect(error?.message.contains(reason) == true)
            }
            #expect(try await test.everything() == before)
        }
    }

    @Test("Later migrations that only add are worked with, and left as they are")
    func ahead() async throws {
        try await withLedger { test in
            try await test.run(
                """
                ALTER TABLE ledger.receipt ADD COLUMN hue text DEFAULT 'green';
                ALTER TABLE ledger.poll_schedule ADD COLUMN hue text;
                ALTER TABLE ledger.subscription ADD COLUMN hue text;
                CREATE TABLE ledger.hue (name text);
                INSERT INTO ledger.migration (name, digest) VALUES ('9998_hues', '\\x00'), ('9999_more', '\\x00')
                """)
            try await test.ledger.operations.requireMigrated()
            let report = try await test.ledger.operations.migrate()
            #expect(report.applied.isEmpty && report.isAhead && report.total == Migrations.all.count + 2)
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            #expect(try await test.text("SELECT state FROM perennial.subscription_now") == "active")
        }
    }

    @Test("A database that lacks a migration is refused with the command to run")
    func behind() async throws {
        try await withLedger { test in
            try await test.run("DELETE FROM ledger.migration WHERE number = (SELECT max(number) FROM ledger.migration)")
            let error = await #expect(throws: LedgerError.self) { try await test.ledger.operations.requireMigrated() }
            #expect(error?.message.contains("run `perennial migrate`") == true)
        }
    }

    @Test("There is room for the observations of this month and the next")
    func months() async throws {
        try await withLedger { test in
            try await test.ledger.operations.addObservationMonths()
            #expect(
                try await test.text(
                    """
                    SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                    WHERE i.inhparent = 'ledger.observation'::regclass AND c.relname IN (
                        'observation_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM'),
                        'observation_' || to_char((now() + interval '1 month') AT TIME ZONE 'UTC', 'YYYY_MM'))
                    """) == "2")
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            #expect(try await test.text("SELECT count(*) FROM ledger.observation_other") == "0")
        }
    }

    @Test("Tables whose rows are replaced all the time are vacuumed by settings of their own")
    func vacuumed() async throws {
        try await withLedger { test in
            let without = try await test.text(
                """
                SELECT COALESCE(string_agg(c.relname, ' '), 'none') FROM pg_class c
                WHERE c.relnamespace = 'ledger'::regnamespace
                  AND c.relname = ANY ('{poll_schedule,app_budget,apple_breaker,worker,verified_minute,event_outbox}')
                  AND NOT COALESCE(array_to_string(c.reloptions, ' ') LIKE '%autovacuum_vacuum_threshold=%', false)
                """)
            #expect(without == "none")
        }
    }

    @Test("psql describes every table, view and function, and every column of the schema perennial")
    func described() async throws {
        try await withLedger { test in
            let without = try await test.text(
                """
                SELECT COALESCE(string_agg(u.name, ' ' ORDER BY u.name), 'none')
                FROM (
                    SELECT c.oid::regclass::text AS name FROM pg_class c
                    WHERE c.relnamespace IN ('ledger'::regnamespace, 'perennial'::regnamespace)
                      AND c.relkind IN ('r', 'p', 'v') AND c.relname !~ '^observation_[0-9]'
                      AND obj_description(c.oid, 'pg_class') IS NULL
                    UNION ALL
                    SELECT format('%s.%s', c.oid::regclass, a.attname)
                    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                    WHERE c.relnamespace = 'perennial'::regnamespace AND c.relkind = 'v'
                      AND col_description(c.oid, a.attnum) IS NULL
                    UNION ALL
                    SELECT p.oid::regprocedure::text FROM pg_proc p
                    WHERE p.pronamespace IN ('ledger'::regnamespace, 'perennial'::regnamespace)
                      AND obj_description(p.oid, 'pg_proc') IS NULL) u
                """)
            #expect(without == "none")
        }
    }
}

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
