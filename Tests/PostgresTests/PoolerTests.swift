import Foundation
import Postgres
import TestSupport
import Testing

/// Many clients over two sessions that change hands after every transaction.
@Suite(
    .serialized,
    .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"))
struct PoolerTests {
    @Test("Sessions change hands", .timeLimit(.minutes(2)), arguments: PrivatePooler.Options.allCases)
    func sessionsChangeHands(_ options: PrivatePooler.Options) async throws {
        try await Self.behindPooler(options) { address in
            let clients = (0..<4).map { _ in Self.client(address) }
            try await clients[0].script("CREATE TABLE kept (id int8 PRIMARY KEY, word text NOT NULL)")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (place, client) in clients.enumerated() {
                    for part in 0..<6 {
                        group.addTask { try await Self.work(of: client, place * 10_000 + part * 1_000) }
                    }
                }
                try await group.waitForAll()
            }
            let kept = try #require(try await clients[1].ask("SELECT count(*) AS n FROM kept").first)
            #expect(try kept.int8("n") == 4 * 6 * 100)
            for client in clients { await client.close() }
        }
    }

    /// Writes a hundred rows and reads each back, between others' statements and failures of its own.
    private static func work(of client: Database, _ first: Int) async throws {
        for id in first..<first + 100 {
            let word = "word \(id)"
            let written = try await client.change(
                "INSERT INTO kept VALUES ($1, $2) -- by \(id % 7)", [.int8(Int64(id)), .text(word)])
            #expect(written == 1)
            async let one = client.ask("SELECT word FROM kept WHERE id = $1", [.int8(Int64(id))])
            async let sum = client.ask("SELECT $1::int8 + \(id % 5) AS n", [.int8(Int64(id))])
            if id.isMultiple(of: 10) {
                let error = await databaseError {
                    _ = try await client.ask("SELECT 1 / ($1::int8 - $1::int8)", [.int8(1)])
                }
                #expect(error?.sqlState == "22012")
                let doubled = await databaseError {
                    _ = try await client.change("INSERT INTO kept VALUES ($1, 'again')", [.int8(Int64(id))])
                }
                #expect(doubled?.sqlState == "23505")
            }
            #expect(try await one.first?.text("word") == word)
            #expect(try await sum.first?.int8("n") == Int64(id + id % 5))
        }
    }

    @Test("What we set holds and stays with us", .timeLimit(.minutes(2)), arguments: PrivatePooler.Options.allCases)
    func whatWeSetHoldsAndStaysWithUs(_ options: PrivatePooler.Options) async throws {
        try await Self.behindPooler(options) { address in
            let client = Self.client(address, statementTimeoutMilliseconds: 300)
            let settings = "SELECT current_setting('statement_timeout') AS limit, current_setting('jit') AS jit"
            for rows in [
                try await client.ask(settings),
                try await client.transaction { try $0.query(Statement(name: "settings", sql: settings)) },
            ] {
                let row = try #require(rows.first)
                #expect(try row.text("limit") == "300ms" && row.text("jit") == "off")
            }
            let slow = await databaseError { _ = try await client.ask("SELECT pg_sleep(10)") }
            #expect(slow?.kind == .timedOut)
            let write = await databaseError { _ = try await client.ask("CREATE TABLE made_by_a_read ()") }
            #expect(write?.sqlState == "25006")
            #expect(try await client.ask("SELECT 1 AS n").first?.int4("n") == 1)

            // The pooler's sessions as others find them.
            let other = Self.client(address, statementTimeoutMilliseconds: 20_000)
            let left = try await other.transaction {
                try $0.script("SET LOCAL statement_timeout TO DEFAULT")
                return try $0.query(
                    Statement(
                        name: "left",
                        sql: """
                            SELECT (SELECT count(*) FROM pg_prepared_statements) AS prepared, reset_val AS timeout
                            FROM pg_settings WHERE name = 'statement_timeout'
                            """))
            }
            let row = try #require(left.first)
            #expect(try row.int8("prepared") == 0 && row.text("timeout") == "0")
            await client.close()
            await other.close()
        }
    }

    private static func client(_ address: String, statementTimeoutMilliseconds: Int = 30_000) -> Database {
        Database(
            DatabaseConfiguration(
                connectionString: address, statementTimeoutMilliseconds: statementTimeoutMilliseconds)
        ) { Issue.record("pooler: \($0)") }
    }

    private static func behindPooler(
        _ options: PrivatePooler.Options, _ body: (String) async throws -> Void
    ) async throws {
        let cluster = try await PrivateCluster()
        try await cluster.start()
        let pooler = try await PrivatePooler(before: cluster, sessions: 2, options: options)
        try await body(pooler.connectionString())
        let complaints = try pooler.log().split(separator: "\n").filter { $0.contains("unclean") }
        #expect(complaints == [])
        try pooler.remove()
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }
}
