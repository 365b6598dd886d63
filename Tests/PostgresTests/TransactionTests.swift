import TestSupport
import Testing

@testable import Postgres

private struct Refusal: Error, Equatable {}

@Suite("Transactions keep everything or nothing, and say which") struct TransactionTests {
    private static let table = """
        CREATE TABLE item (
            id int8 CONSTRAINT item_key PRIMARY KEY, size int4 CONSTRAINT item_size CHECK (size > 0))
        """
    private static let insert = Statement(name: "insert", sql: "INSERT INTO item VALUES ($1, $2)")

    private func count(_ database: Database) async throws -> Int {
        try #require(try await database.ask("SELECT count(*) AS n FROM item").first?.int("n"))
    }

    @Test("Commit keeps and counts rows")
    func commitKeepsAndCountsRows() async throws {
        try await withTestDatabase { database, _ in
            try await database.script(Self.table)
            let changed = try await database.transaction { transaction in
                for id in 1...3 { try transaction.query(Self.insert, [.int8(Int64(id)), .int4(1)]) }
                let update = Statement(name: "update", sql: "UPDATE item SET size = size + 1 WHERE id >= $1")
                return try transaction.execute(update, [.int8(2)])
            }
            #expect(changed == 2)
            #expect(try await count(database) == 3)
        }
    }

    @Test("One statement is a transaction of its own, READ COMMITTED whatever the database's default is")
    func oneStatement() async throws {
        try await withTestDatabase { database, connectionString in
            try await database.script(Self.table)
            try await database.script(
                """
                DO $$ BEGIN
                    EXECUTE format(
                        'ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database());
                END $$
                """)
            let other = Database(DatabaseConfiguration(connectionString: connectionString)) { _ in }
            let add = Statement(
                name: "add",
                sql: "INSERT INTO item VALUES ($1, $2) RETURNING current_setting('transaction_isolation') AS level")
            let rows = try await other.write(add, [.int8(1), .int4(1)])
            let level = try #require(rows.first).text("level")
            #expect(level == "read committed")
            let error = await databaseError { _ = try await other.write(add, [.int8(1), .int4(1)]) }
            #expect(error?.sqlState == "23505")
            #expect(try await count(database) == 1)
            await other.close()
        }
    }

    @Test("Where the connection breaks after a statement was sent, its outcome is unknown, and the next one works")
    func brokenStatement() async throws {
        try await withTestDatabase { database, _ in
            let end = Statement(name: "end", sql: "SELECT pg_terminate_backend(pg_backend_pid())")
            let error = await databaseError { _ = try await database.write(end) }
            #expect(error?.kind == .commitUnknown)
            #expect(error?.message.contains("lost during 'end', so it is not known whether") == true, "\(error as Any)")
            let rows = try await database.write(Statement(name: "one", sql: "SELECT 1 AS one"))
            #expect(rows.count == 1)
        }
    }

    @Test("Where the connection breaks while a statement is prepared, it did not run")
    func brokenPreparation() async throws {
        try await withTestDatabase { database, _ in
            try await database.script(Self.table)
            let insert = try await database.transaction { transaction in
                try transaction.script("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
                let insert = Task {
                    await databaseError { _ = try await database.write(Self.insert, [.int8(1), .int4(1)]) }
                }
                // PostgreSQL looks at the table when it prepares a statement about it.
                try transaction.script(
                    """
                    DO $$ BEGIN
                        FOR tries IN 1..2000 LOOP
                            PERFORM pg_terminate_backend(l.pid) FROM pg_locks l
                            WHERE NOT l.granted AND pg_backend_pid() = ANY(pg_blocking_pids(l.pid));
                            EXIT WHEN FOUND;
                            PERFORM pg_sleep(0.01);
                        END LOOP;
                    END $$
                    """)
                return insert
            }
            let error = await insert.value
            #expect(error?.kind == .connectionLost, "\(error as Any)")
            #expect(error?.message.contains("lost during 'insert'") == true, "\(error as Any)")
            #expect(try await count(database) == 0)
        }
    }

    @Test("A thrown error rolls back and passes unchanged")
    func aThrownErrorRollsBackAndPassesUnchanged() async throws {
        try await withTestDatabase { database, _ in
            try await database.script(Self.table)
            await #expect(throws: Refusal()) {
                try await database.transaction { transaction in
                    try transaction.execute(Self.insert, [.int8(1), .int4(1)])
                    throw Refusal()
                }
            }
            #expect(try await count(database) == 0)
        }
    }

    @Test("A caught failure is not committed")
    func aCaughtFailureIsNotCommitted() async throws {
        try await withTestDatabase { database, _ in
            try await database.script(Self.table)
            let error = await databaseError {
                try await database.transaction { transaction in
                    try transaction.execute(Self.insert, [.int8(1), .int4(1)])
                    do { try transaction.execute(Self.insert, [.int8(1), .int4(1)]) } catch {}
                }
            }
            #expect(error?.sqlState == "23505")
            #expect(try await count(database) == 0)
        }
    }

    @Test("Deferred constraints fail at commit")
    func deferredConstraintsFailAtCommit() async throws {
        try await withTestDatabase { database, _ in
            try await database.script(
                "CREATE TABLE late (id int8 CONSTRAINT late_key UNIQUE DEFERRABLE INITIALLY DEFERRED)")
            let error = await databaseError { _ = try await database.change("INSERT INTO late VALUES (1), (1)") }
            #expect(error?.kind == .server(sqlState: "23505", constraint: "late_key", table: "late"))
        }
    }

    @Test("Errors name state, constraint and table")
    func errorsNameStateConstraintAndTable() async throws {
        try await withTestDatabase { database, _ in
            try await database.script(Self.table)
            _ = try await database.change("INSERT INTO item VALUES (1, 1)")
            let twice = await databaseError { _ = try await database.change("INSERT INTO item VALUES (1, 1)") }
            #expect(twice?.kind == .server(sqlState: "23505", constraint: "item_key", table: "item"))
            #expect(twice?.disposition == .reject)
            let empty = await databaseError { _ = try await database.change("INSERT INTO item VALUES (2, 0)") }
            #expect(empty?.constraint == "item_size")
            let typo = await databaseError { _ = try await database.change("INSRT") }
            #expect(typo?.sqlState == "42601")
            #expect(typo?.disposition == .alarm)
            let value = await databaseError { _ = try await database.ask("SELECT $1::text::int4", [.text("secret")]) }
            #expect(value?.sqlState == "22P02")
            #expect(value?.message.contains("secret") == false)
            let write = await databaseError { _ = try await database.ask("INSERT INTO item VALUES (9, 9)") }
            #expect(write?.sqlState == "25006")
        }
    }

    @Test("Scripts run many statements and stop at the first failure")
    func scriptsRunManyStatementsAndStopAtTheFirstFailure() async throws {
        try await withTestDatabase { database, _ in
            try await database.script("CREATE TABLE a (x int4); INSERT INTO a VALUES (1); INSERT INTO a VALUES (2);")
            let error = await databaseError { try await database.script("DELETE FROM a; SELECT 1/0; SELECT 1") }
            #expect(error?.sqlState == "22012")
            #expect(try await database.ask("SELECT count(*) AS n FROM a").first?.int("n") == 2)
            let copy = await databaseError { try await database.script("COPY a FROM STDIN") }
            #expect(copy?.kind == .connectionLost)
            #expect(try await database.change("DELETE FROM a") == 2)
        }
    }

    /// A changed table makes plans stale and DEALLOCATE removes them: readers never see it, a writer once.
    @Test("Stale statements are prepared again")
    func staleStatementsArePreparedAgain() async throws {
        try await withTestDatabase { database, connectionString in
            try await database.script("CREATE TABLE grown (a int4); INSERT INTO grown VALUES (1)")
            let all = Statement(name: "all", sql: "SELECT * FROM grown")
            #expect(try await database.query(all).first?.table.columns == ["a"])
            try await database.script("ALTER TABLE grown ADD COLUMN b int4")
            #expect(try await database.query(all).first?.table.columns == ["a", "b"])
            for _ in 0..<4 { _ = try await database.transaction { try $0.query(all).count } }
            try await database.script("ALTER TABLE grown ADD COLUMN c int4")
            var failures = 0
            for _ in 0..<8 {
                do {
                    #expect(try await database.transaction { try $0.query(all)[0].table.columns } == ["a", "b", "c"])
                } catch let error as DatabaseError {
                    failures += 1
                    #expect(error.disposition == .retry(afterMilliseconds: 0))
                }
            }
            let connections = DatabaseConfiguration(connectionString: connectionString).writeConnections
            #expect(failures <= connections, "once per write connection")
        }
    }

    @Test("A statement may change its parameter types")
    func aStatementMayChangeItsParameterTypes() async throws {
        try await withTestDatabase { database, _ in
            let statement = Statement(name: "typed", sql: "SELECT ($1 + 1)::int8 AS v")
            for (parameter, expected) in [(Parameter.int4(1), 2), (.int8(5_000_000_000), 5_000_000_001)] {
                let rows = try await database.query(statement, [parameter])
                #expect(try rows.first?.int("v") == expected)
            }
        }
    }
}
