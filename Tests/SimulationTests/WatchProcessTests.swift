import Foundation
import Postgres
import TestSupport
import Testing

@Suite("What is watched ends at a signal, quietly and with status 0", .timeLimit(.minutes(2)))
struct WatchProcessTests {
    /// A watching command, with words that each look shows.
    struct Command: Sendable {
        let arguments: [String]
        let words: String
    }

    static let commands = [
        Command(arguments: ["status", "--watch", "--interval", "1"], words: "Last verified answer"),
        Command(
            arguments: ["report", "stuck_work", "--watch", "--interval", "1", "--format", "csv"], words: "no worker,"),
    ]

    @Test("A watch looks again and again until a signal", arguments: commands, [SIGINT, SIGTERM])
    func again(command: Command, signal: Int32) async throws {
        try await withMigratedDatabase { _, connectionString in
            let watch = try PerennialProcess(command.arguments, environment: ["DATABASE_URL": connectionString])
            while watch.said.components(separatedBy: command.words).count < 4 {
                try #require(watch.process.isRunning, "it ended by itself: \(watch.said)")
                try await Task.sleep(for: .milliseconds(20))
            }
            kill(watch.process.processIdentifier, signal)
            #expect(await watch.end() == 0)
            #expect(watch.process.terminationReason == .exit)
            try watch.forget()
        }
    }

    @Test("A signal ends a look whose statement waits", arguments: commands)
    func waitingStatement(command: Command) async throws {
        try await withMigratedDatabase { database, connectionString in
            let watch = try await database.transaction { transaction in
                try transaction.script("LOCK TABLE ledger.app, ledger.receipt IN ACCESS EXCLUSIVE MODE")
                let watch = try PerennialProcess(command.arguments, environment: ["DATABASE_URL": connectionString])
                let waiting = Statement(
                    name: "waiting",
                    sql: """
                        SELECT FROM pg_locks
                        WHERE NOT granted
                              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                        """)
                while watch.process.isRunning, try transaction.query(waiting, []).isEmpty { usleep(20_000) }
                kill(watch.process.processIdentifier, SIGINT)
                while watch.process.isRunning { usleep(2_000) }
                return watch
            }
            #expect(await watch.end() == 0)
            #expect(watch.said.isEmpty, "\(watch.said)")
            try watch.forget()
        }
    }

    @Test("A signal ends a look that waits for a connection", arguments: commands)
    func waitingConnection(command: Command) async throws {
        let watch = try PerennialProcess(
            command.arguments + ["--log-level", "debug"],
            environment: ["DATABASE_URL": "postgresql://127.0.0.1:1/nowhere"])
        // The log tells of the refused connection at once; the look waits for another one.
        while watch.process.isRunning, watch.said.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        kill(watch.process.processIdentifier, SIGINT)
        #expect(await watch.end() == 0)
        #expect(!watch.said.contains("cancelled"), "\(watch.said)")
        try watch.forget()
    }

    @Test("A failed look of CSV goes to standard error, and the next look follows")
    func failedLook() async throws {
        try await withTestDatabase { _, connectionString in
            let watch = try PerennialProcess(
                ["report", "stuck_work", "--watch", "--interval", "1", "--format", "csv"],
                environment: ["DATABASE_URL": connectionString], redirection: "> /dev/null")
            while watch.said.components(separatedBy: "perennial: The database has no Perennial schema").count < 3 {
                try #require(watch.process.isRunning, "it ended by itself: \(watch.said)")
                try await Task.sleep(for: .milliseconds(20))
            }
            kill(watch.process.processIdentifier, SIGINT)
            #expect(await watch.end() == 0)
            try watch.forget()
        }
    }
}
