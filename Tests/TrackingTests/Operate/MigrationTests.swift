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

    @Test("A database of another encoding is refused with what to do, and nothing is created in it")
    func encoding() async throws {
        try await withTestDatabase(encoding: "SQL_ASCII") { database, _ in
            let operations = SubscriptionLedger(database: database).operations
            let error = await #expect(throws: LedgerError.self) { _ = try await operations.migrate() }
            #expect(error?.message.contains("SQL_ASCII and Perennial needs UTF8") == true, "\(error?.message ?? "")")
            let created = "SELECT 1 AS one FROM pg_namespace WHERE nspname IN ('ledger', 'perennial')"
            let schemas = try await database.query(.test(created)).count
            #expect(schemas == 0)
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
            ("UPDATE ledger.migration SET name = '0001_types' WHERE number = 1", "before 0.1.0"),
            (
                """
                INSERT INTO ledger.migration (name, digest) VALUES ('9999_newer', '\\x00');
                UPDATE ledger.compatibility SET program_min = 9999
                """, "run a newer perennial"
            ),
        ])
    func refused(change: String, reason: String) async throws {
        try await withNewLedger { test in
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
        try await withNewLedger { test in
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
        try await withNewLedger { test in
            try await test.run("DELETE FROM ledger.migration WHERE number = (SELECT max(number) FROM ledger.migration)")
            let error = await #expect(throws: LedgerError.self) { try await test.ledger.operations.requireMigrated() }
            #expect(error?.message.contains("run `perennial migrate`") == true)
        }
    }

    @Test("There is room for the observations of this month and the next")
    func months() async throws {
        try await withNewLedger { test in
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
        try await withNewLedger { test in
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
        try await withNewLedger { test in
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
