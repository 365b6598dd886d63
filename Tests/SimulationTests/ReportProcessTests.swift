import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@Suite("Reports give scripts their result as a status")
struct ReportProcessTests {
    private static let reports = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "sql/reports")

    @Test("A check is status 0 when it finds nothing and 2 when it does; a report that is not there is 1")
    func statuses() async throws {
        try await withReports { database, connectionString in
            #expect(try await run(["summaries_check"], connectionString).status == 0)
            try await database.transaction {
                try $0.script(
                    """
                    INSERT INTO ledger.summary_day
                    SELECT app_id, 'Production', '2026-01-01', '', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0
                    FROM ledger.app
                    """)
            }
            let found = try await run(["summaries_check", "--format", "csv"], connectionString)
            #expect(found.status == 2)
            #expect(found.text.contains("2026-01-01,com.example.app,,active,1,"), "\(found.text)")
            // Another report that finds something is no check.
            #expect(try await run(["stuck_work"], connectionString).status == 0)
            #expect(try await run(["nonsense"], connectionString).status == 1)
            for (odd, sentence) in [
                (["--from", "someday"], "--from is 'someday'; give a date or an instant, such as 2026-01-31 or"),
                (["--set", "time_zone=Nowhere"], "--set time_zone is 'Nowhere'; give the name of a zone, such as"),
            ] {
                let refused = try await run(["churn"] + odd, connectionString)
                #expect(refused.status == 1)
                #expect(refused.text.contains(sentence), "\(refused.text)")
            }
            for offset in ["+05:30", "-3", "UTC+3", "<X>-2"] {
                let refused = try await run(["churn", "--set", "time_zone=\(offset)"], connectionString)
                #expect(refused.status == 1 && refused.text.contains("is an offset"), "\(refused.text)")
            }
            for zone in ["America/Port-au-Prince", "Etc/GMT+3", "NZ-CHAT", "EST5EDT"] {
                #expect(try await run(["churn", "--set", "time_zone=\(zone)"], connectionString).status == 0)
            }
            #expect(try await run(["stuck_work", "--interval", "3"], connectionString).status == 64)
        }
    }

    @Test("Before the first migration a report says what to do", arguments: ["mrr", "stuck_work", "revenue"])
    func unmigrated(report: String) async throws {
        try await withTestDatabase { _, connectionString in
            let refused = try await run([report], connectionString)
            #expect(refused.status == 1)
            #expect(refused.text.contains("run `perennial migrate` first"), "\(refused.text)")
        }
    }

    @Test("What does not exist is an error that says what does, here and in psql")
    func unknown() async throws {
        try await withReports { _, connectionString in
            let file = Self.reports.appending(path: "revenue.sql").path
            let odd = [
                ("bundle_id=com.example.typo", "There is no app com.example.typo; known: com.example.app"),
                ("environment=sandbox", "There is no environment sandbox; known: Production, Sandbox"),
                ("bucket=fortnight", "There is no bucket fortnight; known: day, week, month, quarter, year"),
            ]
            for (variable, sentence) in odd {
                let refused = try await run(["revenue", "--set", variable], connectionString)
                #expect(refused.status == 1)
                #expect(refused.text.contains(sentence), "\(refused.text)")
                let arguments = ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-v", variable, "-f", file, connectionString]
                let psql = try await finish(start("/usr/bin/env", arguments, connectionString))
                #expect(psql.status == 3)
                #expect(psql.text.contains(sentence) && !psql.text.contains("rows)"), "\(psql.text)")
            }
        }
    }

    private func withReports(_ body: (Database, String) async throws -> Void) async throws {
        try await withMigratedDatabase { database, connectionString in
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: PretendWorld.masterKey))
            try await ledger.apps.add("com.example.app", secret: "secret", callsPerSecond: 0)
            try await body(database, connectionString)
        }
    }

    private func start(_ arguments: [String], _ connectionString: String) throws -> (Process, Pipe) {
        let program = PretendWorld.productsFolder.appendingPathComponent("perennial").path
        return try start(program, ["report"] + arguments, connectionString)
    }

    private func start(
        _ program: String, _ arguments: [String], _ connectionString: String
    ) throws -> (Process, Pipe) {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        process.environment = ["DATABASE_URL": connectionString, "PATH": path]
        process.standardOutput = output
        process.standardError = output
        try process.run()
        return (process, output)
    }

    private func run(_ arguments: [String], _ connectionString: String) async throws -> (status: Int32, text: String) {
        try await finish(start(arguments, connectionString))
    }

    private func finish(_ started: (process: Process, output: Pipe)) async -> (status: Int32, text: String) {
        let text = await started.output.fileHandleForReading.textToEnd()
        return (await started.process.ended(), text)
    }
}
