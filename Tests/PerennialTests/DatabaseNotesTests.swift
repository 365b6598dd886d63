import Logging
import Postgres
import Synchronization
import TestSupport
import Testing
import Tracking

@testable import perennial

@Suite("The log has few lines while PostgreSQL goes and comes back under load") struct DatabaseNotesTests {
    /// Keeps the level and message of each line.
    private final class LogLines: Sendable {
        private let kept = Mutex<[String]>([])

        var reported: [String] { kept.withLock { $0 }.filter { !$0.hasPrefix("debug") } }

        var logger: Logger {
            var logger = Logger(label: "test") { _ in Handler(lines: self) }
            logger.logLevel = .trace
            return logger
        }

        private struct Handler: LogHandler {
            let lines: LogLines
            var metadata: Logger.Metadata = [:]
            var logLevel = Logger.Level.trace

            subscript(metadataKey key: String) -> Logger.Metadata.Value? {
                get { metadata[key] }
                set { metadata[key] = newValue }
            }

            func log(event: LogEvent) { lines.kept.withLock { $0.append("\(event.level) \(event.message)") } }
        }
    }

    private static let one = Statement(name: "one", sql: "SELECT 1 AS one")

    /// Reads and transactions of many callers at once; how many were answered.
    private func ask(_ database: Database) async -> Int {
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask { await answers { _ = try await database.query(Self.one) } }
                group.addTask { await answers { _ = try await database.transaction { try $0.query(Self.one) } } }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
    }

    private func answers(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch {
            return false
        }
    }

    @Test(
        "A database that goes and comes back has one line for each, however many connections notice",
        .timeLimit(.minutes(2)), arguments: [false, true])
    func goesAndComes(isBrief: Bool) async throws {
        let cluster = try await PrivateCluster()
        try await cluster.start()
        let lines = LogLines()
        let database = Database(
            DatabaseConfiguration(
                connectionString: cluster.connectionString, connectTimeoutSeconds: 1,
                statementTimeoutMilliseconds: 1_000),
            note: DatabaseNotes(logger: lines.logger, isBrief: isBrief).take)
        for _ in 0..<2 {
            while await ask(database) < 16 {}
            try await cluster.stop(immediate: true)
            for _ in 0..<3 { #expect(await ask(database) == 0) }
            try await cluster.start()
        }
        while await ask(database) < 16 {}
        await database.close()
        try await cluster.stop(immediate: true)
        try await cluster.remove()
        let beginnings = lines.reported.map { String($0.prefix { $0 != ";" && $0 != "," }) }
        let outage = [
            "error the database does not answer and is tried until it does", "info the database answers again",
        ]
        #expect(beginnings == (isBrief ? [] : outage + outage))
    }
}
