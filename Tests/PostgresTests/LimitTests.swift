import Foundation
import TestSupport
import Testing

@testable import Postgres

@Suite("Every wait has an end, and says why it ended") struct LimitTests {
    private func configuration(_ connectionString: String) -> DatabaseConfiguration {
        DatabaseConfiguration(
            connectionString: connectionString, writeConnections: 1, connectTimeoutSeconds: 1,
            statementTimeoutMilliseconds: 200, queueLimit: 3)
    }

    @Test("Slow statements time out and the connection lives")
    func slowStatementsTimeOutAndTheConnectionLives() async throws {
        try await withTestDatabase { _, connectionString in
            let database = Database(configuration(connectionString)) { print($0) }
            let read = await databaseError { _ = try await database.ask("SELECT pg_sleep(60)") }
            #expect(read?.kind == .timedOut)
            let write = await databaseError { _ = try await database.change("SELECT pg_sleep(60)") }
            #expect(write?.kind == .timedOut)
            try await expectAnswers(from: database)
            await database.close()
        }
    }

    /// The statement resets the server's time-out, as a pooler may drop it: ours cancels, two seconds later.
    @Test("We cancel when the server does not")
    func weCancelWhenTheServerDoesNot() async throws {
        try await withTestDatabase { _, connectionString in
            let database = Database(configuration(connectionString)) { print($0) }
            let read = await databaseError {
                _ = try await database.ask("SELECT set_config('statement_timeout', '0', false)")
                _ = try await database.ask("SELECT pg_sleep(60)")
            }
            #expect(read?.kind == .timedOut)
            let write = await databaseError {
                try await database.transaction { transaction in
                    try transaction.query(
                        Statement(name: "off", sql: "SELECT set_config('statement_timeout', '0', false)"))
                    try transaction.query(Statement(name: "sleep", sql: "SELECT pg_sleep(60)"))
                }
            }
            #expect(write?.kind == .timedOut)
            try await expectAnswers(from: database)
            await database.close()
        }
    }

    /// The first two are on their way to the server, which works on the first; the third waits in the queue.
    @Test("A caller's own limit ends its wait and no other", .timeLimit(.minutes(1)))
    func aCallersOwnLimitEndsItsWait() async throws {
        try await withTestDatabase { other, connectionString in
            let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
            try await expectAnswers(from: database)
            let pause = Statement(name: "pause", sql: "SELECT pg_sleep(600)")
            let patient = Task { try await database.ask("SELECT 'patient'::text AS word") }
            for error in await withTaskGroup(
                of: DatabaseError?.self,
                body: { group in
                    for _ in 0..<3 {
                        group.addTask {
                            await databaseError { _ = try await database.query(pause, within: .milliseconds(300)) }
                        }
                    }
                    return await group.reduce(into: []) { $0.append($1) }
                })
            {
                #expect(error?.kind == .timedOut, "\(String(describing: error))")
                #expect(error?.message.contains("within 0.3 seconds") == true)
            }
            let ending = Task {
                let end = """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND state = 'active' AND query LIKE '%pg_sleep(600)'
                    """
                while true {
                    _ = try await other.ask(end)
                    try await Task.sleep(for: .milliseconds(200))
                }
            }
            #expect(try await patient.value.first?.text("word") == "patient")
            try await expectAnswers(from: database)
            ending.cancel()
            _ = await ending.result
            await database.close()
        }
    }

    @Test("A caller's own limit holds for a server that is not there", .timeLimit(.minutes(1)))
    func aCallersOwnLimitWithoutAServer() async throws {
        let port = try SilentPort()
        defer { port.close() }
        let database = Database(
            DatabaseConfiguration(connectionString: "host=127.0.0.1 port=\(port.number)", connectTimeoutSeconds: 40)
        ) { print($0) }
        let start = ContinuousClock.now
        let statement = Statement(name: "one", sql: "SELECT 1")
        let error = await databaseError { _ = try await database.query(statement, within: .milliseconds(300)) }
        #expect(error?.kind == .cannotConnect)
        #expect(ContinuousClock.now - start < .seconds(20))
        await database.close()
    }

    @Test("Scripts have no timeout")
    func scriptsHaveNoTimeout() async throws {
        try await withTestDatabase { _, connectionString in
            let database = Database(configuration(connectionString)) { print($0) }
            try await database.script("SELECT pg_sleep(0.5)")
            await database.close()
        }
    }

    @Test("A server that is not there is reported", .timeLimit(.minutes(1)))
    func aServerThatIsNotThereIsReported() async throws {
        for address in ["host=/nonexistent-socket-folder", "host=127.0.0.1 port=1 password=hunter2"] {
            let database = Database(configuration(address)) { print($0) }
            async let read = databaseError { _ = try await database.ask("SELECT 1") }
            async let write = databaseError { _ = try await database.change("SELECT 1") }
            for error in [await read, await write] {
                #expect(error?.kind == .cannotConnect)
                #expect(error?.message.contains("hunter2") == false)
            }
            await database.close()
        }
    }

    @Test(
        "The reason names what gave the address, and what to check there",
        arguments: [
            (
                "FATAL:  password authentication failed for user \"u\"",
                "check the user and the password of PGHOST, PGPASSFILE"
            ),
            ("fe_sendauth: no password supplied", "check the user and the password of PGHOST, PGPASSFILE"),
            ("connection refused", "check that it runs and PGHOST, PGPASSFILE"),
            ("FATAL:  database \"d\" does not exist", "create it (`createdb --owner USER --encoding UTF8 "),
            ("FATAL:  role \"u\" does not exist", "create it (`createuser --createrole USER`"),
            ("FATAL:  permission denied for database \"d\"", "(`GRANT CONNECT ON DATABASE NAME TO USER`"),
            ("FATAL:  role \"perennial_api\" is not permitted to log in", "name an account that may log in"),
            ("could not translate host name \"h\" to address", "name servers of this machine; in a URI percent-encode"),
            ("SSL error: certificate verify failed", "check sslmode"),
        ])
    func theReasonNamesTheAddress(_ reason: String, _ advice: String) {
        let error = DatabaseError.cannotConnect(reason, by: "PGHOST, PGPASSFILE")
        #expect(error.message.contains(reason) && error.message.contains(advice), "\(error)")
        #expect(!error.message.contains("DATABASE_URL"), "\(error)")
        let asked = DatabaseError.cannotConnect("\(reason); Is the server running on that host and …?", by: "PGHOST")
        #expect(!asked.message.contains("Is the server running"), "\(asked)")
    }

    @Test("A process that stops waits only briefly for a database that is away", .timeLimit(.minutes(1)))
    func aProcessThatStopsWaitsBriefly() async throws {
        let port = try SilentPort()
        defer { port.close() }
        let database = Database(
            DatabaseConfiguration(
                connectionString: "host=127.0.0.1 port=\(port.number)", addressSource: "PGHOST",
                connectTimeoutSeconds: 20)
        ) { print($0) }
        database.shortenWaitsForStop()
        let start = ContinuousClock.now
        async let read = databaseError { _ = try await database.ask("SELECT 1") }
        async let write = databaseError { _ = try await database.change("SELECT 1") }
        for error in [await read, await write] {
            #expect(error?.kind == .cannotConnect && error?.message.contains("check that it runs and PGHOST.") == true)
        }
        #expect(ContinuousClock.now - start < .seconds(5))
        await database.close()
    }

    @Test("The end of a database that is away waits for no connection that is being made", .timeLimit(.minutes(1)))
    func theEndWaitsForNoConnection() async throws {
        let port = try SilentPort()
        defer { port.close() }
        let database = Database(
            DatabaseConfiguration(
                connectionString: "host=127.0.0.1 port=\(port.number)", writeConnections: 1, connectTimeoutSeconds: 20)
        ) { print($0) }
        async let write = databaseError { _ = try await database.change("SELECT 1") }
        // The first attempt is refused; a later one is accepted and gets no answer.
        try await Task.sleep(for: .milliseconds(300))
        port.listen()
        try await Task.sleep(for: .seconds(3))
        let start = ContinuousClock.now
        await database.close()
        #expect(ContinuousClock.now - start < .seconds(5))
        #expect(await write?.kind == .closed)
    }

    @Test(
        "Bad connection strings are refused without quoting them",
        arguments: [
            "postgresql://user:hunter2@host:port/db", "nonsense", "host=h passwrd=hunter2",
            "postgresql://u:a@hunter2@h/db", "postgresql://u:a@hunter2/b@h/db", "postgresql://u:12/hunter2@h/db",
            "postgresql://u:a?b@hunter2/c@h/db", "postgresql://u:hunter2#@h/d@b", "postgresql://u:a%zz\"hunter2@h/db",
        ])
    func badConnectionStringsAreRefusedWithoutQuotingThem(_ text: String) async throws {
        let configuration = DatabaseConfiguration(connectionString: text)
        let refused = await databaseError { try configuration.validate() }
        #expect(refused?.kind == .cannotConnect)
        #expect(refused?.message.contains("hunter2") == false)
        #expect(refused?.message.contains("percent-encode reserved characters") == true)
        let asked = await databaseError { _ = try await Database(configuration) { print($0) }.ask("SELECT 1") }
        #expect(asked == refused)
    }

    @Test("Callers cancelled while they wait leave the line")
    func callersCancelledWhileTheyWaitLeaveTheLine() async throws {
        try await withTestDatabase { _, connectionString in
            let database = Database(
                DatabaseConfiguration(connectionString: connectionString, writeConnections: 1, queueLimit: 1)
            ) { print($0) }
            try await holdingTheOnlyWriter(of: database) {
                // Twice, because a cancelled caller that kept its place would fill the queue.
                for _ in 0..<2 { await expectCancelled { _ = try await database.change("SELECT 1") } }
            }
            try await expectAnswers(from: database)
            await database.close()
        }
    }

    @Test("Reads cancelled on their way are answered at once")
    func readsCancelledOnTheirWayAreAnsweredAtOnce() async throws {
        try await withTestDatabase { database, _ in
            await expectCancelled { _ = try await database.ask("SELECT pg_sleep(2)") }
            try await expectAnswers(from: database)
        }
    }

    /// Starts the work, which would last longer than a moment, and cancels it after a moment.
    private func expectCancelled(_ work: @escaping @Sendable () async throws -> Void) async {
        let error = await withTaskGroup(of: DatabaseError?.self) { group in
            group.addTask { await databaseError(work) }
            // Long enough to be in the line most times; being cancelled sooner must end the same way.
            await Task { try? await Task.sleep(for: .milliseconds(50)) }.value
            group.cancelAll()
            return await group.next() ?? nil
        }
        #expect(error?.kind == .cancelled)
    }

    @Test("A full queue refuses")
    func aFullQueueRefuses() async throws {
        try await withTestDatabase { _, connectionString in
            let database = Database(
                DatabaseConfiguration(connectionString: connectionString, writeConnections: 1, queueLimit: 3)
            ) { print($0) }
            try await holdingTheOnlyWriter(of: database) {
                await withTaskGroup(of: DatabaseError?.self) { group in
                    for _ in 0..<4 {
                        group.addTask { await databaseError { _ = try await database.change("SELECT 1") } }
                    }
                    // Three wait; the one that came last is the only one with an answer.
                    #expect(await group.next()??.kind == .queueFull)
                    group.cancelAll()
                    for await error in group { #expect(error?.kind == .cancelled) }
                }
            }
            await database.close()
        }
    }

    @Test("Closing finishes work and refuses what waits")
    func closingFinishesWorkAndRefusesWhatWaits() async throws {
        try await withTestDatabase { observer, connectionString in
            let database = Database(
                DatabaseConfiguration(connectionString: connectionString, writeConnections: 1)
            ) { print($0) }
            _ = try await observer.ask("SELECT pg_advisory_lock(7)")
            let running = Task { try await database.change("SELECT pg_advisory_xact_lock(7)") }
            let reading = Task { try await database.ask("SELECT pg_advisory_xact_lock(7)") }
            let held = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
            while try await observer.ask(held).count < 2 { try await Task.sleep(for: .milliseconds(10)) }

            let waiting = Task { try await database.change("SELECT 1") }
            async let closing: Void = database.close()
            #expect(await databaseError { _ = try await waiting.value }?.kind == .closed)
            _ = try await observer.ask("SELECT pg_advisory_unlock(7)")
            #expect(try await running.value == 1)
            #expect(try await reading.value.count == 1)
            await closing
            #expect(await databaseError { _ = try await database.ask("SELECT 1") }?.kind == .closed)
            #expect(await databaseError { _ = try await database.change("SELECT 1") }?.kind == .closed)
            await database.close()
        }
    }

    private func expectAnswers(from database: Database) async throws {
        #expect(try await database.ask("SELECT 1 AS one").first?.int("one") == 1)
        #expect(try await database.change("SELECT 1") == 1)
    }

    /// Runs `body` while a transaction sleeps on the only write connection; the sleep is cancelled by the server after.
    private func holdingTheOnlyWriter(of database: Database, _ body: () async throws -> Void) async throws {
        let held = Task {
            try await database.change("SELECT pg_sleep(30) /* held */")
        }
        let find = """
            SELECT pid FROM pg_stat_activity
            WHERE query LIKE '%held */' AND state = 'active' AND datname = current_database()
            """
        while try await database.ask(find).isEmpty { try await Task.sleep(for: .milliseconds(10)) }
        try await body()
        _ = try await database.ask("SELECT pg_cancel_backend(pid) FROM (\(find)) AS holder")
        #expect(await databaseError { _ = try await held.value }?.kind == .timedOut)
    }
}

/// A port of this machine that refuses connections, and from `listen` on accepts them and says nothing.
private struct SilentPort {
    let number: UInt16
    private let handle: Int32

    init() throws {
        #if canImport(Glibc)
            handle = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            handle = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let handle = handle
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(handle, $0, length) == 0 && getsockname(handle, $0, &length) == 0
            }
        }
        number = UInt16(bigEndian: address.sin_port)
        try #require(isBound)
    }

    func listen() { #expect(Foundation.listen(handle, 16) == 0) }
    func close() { _ = Foundation.close(handle) }
}
