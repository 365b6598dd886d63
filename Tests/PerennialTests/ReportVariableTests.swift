import Foundation
import JSON
import Postgres
import Server
import SQL
import Testing
import TestSupport
import Tracking

@testable import perennial

/// The tests that use it only read.
private let history = OncePerSuite(ReportFigureTests.withHistory)

/// What reports are asked for: every bucket, instants as they are written, and nothing that does not exist.
@Suite("Reports take every valid variable and refuse the others", history) struct ReportVariableTests {
    static let buckets = ["day", "week", "month", "quarter", "year"]

    private func run(
        _ report: SQLFile, _ given: [String: String], in database: Database
    ) async throws -> Listing {
        let statement = ReportStatement(report.text)
        let values = try statement.values(given, report: report.name)
        return try await database.transaction { try Listing(of: statement, values, in: $0) }
    }

    private func withHistory(_ body: (Database) async throws -> Void) async throws {
        let history = try String(contentsOf: ReportFigureTests.folder.appending(path: "history.sql"), encoding: .utf8)
        try await withMigratedDatabase { database, _ in
            try await database.transaction { try $0.script(history) }
            try await body(database)
        }
    }

    @Test func `every report with buckets takes each of them and marks those that are not complete`() async throws {
        let reports = Reports.all.filter { ReportStatement($0.text).variables.contains("bucket") }
        #expect(reports.count == 12)
        // The history has no term of payments.
        let terms = ReportFigureTests.folder.appending(path: "payment_success.sql")
        try await withHistory { database in
            try await database.transaction { try $0.script(String(contentsOf: terms, encoding: .utf8)) }
            for report in reports {
                for bucket in Self.buckets {
                    let whole = try await run(report, ["bucket": bucket], in: database)
                    #expect(whole.columns.last == "is_complete", "\(report.name)")
                    // The year of the history may not be over.
                    let isComplete = whole.rows.contains { $0.last == .bool(true) }
                    #expect(isComplete || bucket == "year", "\(report.name) by \(bucket)")
                    // Half of the first day is cut off, so half of every bucket that begins with it.
                    let since = try #require(whole.rows.first?.first)
                    guard case .string(let day) = since else { continue }
                    let given = ["bucket": bucket, "from": "\(day)T12:00Z", "until": "\(day)T18:00Z"]
                    let cut = try await run(report, given, in: database)
                    #expect(!cut.rows.contains { $0.last == .bool(true) }, "\(report.name) by \(bucket)")
                }
            }
        }
    }

    @Test func `what does not exist is an error that says what does, whether there are rows or not`() async throws {
        let odd = [
            ("bundle_id", "com.example.typo", "There is no app com.example.typo; known: com.example.app"),
            ("environment", "production", "There is no environment production; known: Production, Sandbox"),
            ("bucket", "decade", "There is no bucket decade; known: day, week, month, quarter, year"),
            ("by", "customer", "There is no dimension customer; known: total, product"),
        ]
        func expectRefusals(in database: Database) async throws {
            var refusals = 0
            for report in Reports.all {
                for (variable, value, sentence) in odd
                where ReportStatement(report.text).variables.contains(variable) {
                    let error = await #expect(throws: DatabaseError.self, "\(report.name) \(variable)") {
                        try await run(report, [variable: value], in: database)
                    }
                    #expect(error?.message.contains(sentence) == true, "\(report.name): \(error?.message ?? "")")
                    refusals += 1
                }
            }
            #expect(refusals > 40)
        }
        try await history.use(expectRefusals)
        try await withMigratedDatabase { database, _ in
            let none = await #expect(throws: DatabaseError.self) {
                try await run(Reports.all[0], ["bundle_id": "com.example.app"], in: database)
            }
            #expect(none?.message.contains("perennial app add") == true)
            try await database.transaction {
                try $0.script("INSERT INTO ledger.app (bundle_id, name) VALUES ('com.example.app', 'Example')")
            }
            try await expectRefusals(in: database)
        }
    }

    @Test func `a value that cannot be read is named with its variable, the form and an example`() async throws {
        try await history.use { database in
            var refusals = 0
            for report in Reports.all {
                let statement = ReportStatement(report.text)
                for (variable, form) in ReportStatement.forms where statement.variables.contains(variable) {
                    let values = try statement.values([variable: "nonsense"], report: report.name)
                    let refusal = await #expect(throws: Failure.self, "\(report.name) \(variable)") {
                        try await statement.requireReadable(values, in: database)
                    }
                    let flag = ["from", "until"].contains(variable) ? "--\(variable)" : "--set \(variable)"
                    #expect(refusal?.description == "\(flag) is 'nonsense'; give \(form.words).", "\(report.name)")
                    refusals += 1
                }
                try await statement.requireReadable(statement.values([:], report: report.name), in: database)
            }
            #expect(refusals > 60)
            let renewals = try #require(Reports.all.first { $0.name == "expected_renewals" })
            let large = ["days": "2147483647", "time_zone": "UTC"]
            let error = await #expect(throws: DatabaseError.self) { try await run(renewals, large, in: database) }
            #expect(error?.sqlState?.hasPrefix("22") == true)
            let statement = ReportStatement(renewals.text)
            let values = try statement.values(large, report: renewals.name)
            #expect(
                statement.typed(values).map(\.advice) == [
                    "--set days is '2147483647'; give a whole number, such as 30."
                ])
        }
    }

    @Test func `a variable is of a known form, or its report refuses it by name`() {
        let named = ["bundle_id", "environment", "bucket", "by"]
        for report in Reports.all {
            for variable in ReportStatement(report.text).variables where !named.contains(variable) {
                #expect(ReportStatement.forms[variable] != nil, "\(report.name) \(variable)")
            }
        }
    }

    @Test(arguments: [
        ("2026-01-20", "UTC", "2026-01-20 00:00:00"),
        ("2026-01-20", "Europe/Berlin", "2026-01-19 23:00:00"),
        ("2026-01-20 12:00", "Europe/Berlin", "2026-01-20 11:00:00"),
        ("2026-01-20T12:00Z", "Europe/Berlin", "2026-01-20 12:00:00"),
        ("2026-01-20T12:00-05", "Europe/Berlin", "2026-01-20 17:00:00"),
        ("2026-07-20Z", "America/New_York", "2026-07-20 00:00:00"),
        ("2026-07-20", "America/New_York", "2026-07-20 04:00:00"),
    ])
    func `a date is its midnight in the report's time zone, an instant itself`(
        value: String, zone: String, instant: String
    ) async throws {
        try await history.use { database in
            let query = "SELECT (perennial.instant('\(value)', '\(zone)') AT TIME ZONE 'UTC')::text AS instant"
            let row = try #require(try await database.query(Statement(name: query, sql: query)).first)
            #expect(try row.text("instant") == instant)
        }
    }

    /// 22 January in Auckland ends at 11 in the morning of UTC's, D's trial at midnight.
    @Test func `days and what is cut from them are those of the time zone`() async throws {
        try await history.use { database in
            let report = try #require(Reports.all.first { $0.name == "trials" })
            let zone = ["bucket": "day", "time_zone": "Pacific/Auckland", "from": "2026-01-22"]
            let lost = try await run(report, zone, in: database)
            #expect(lost.rows.map { $0[0] } == [.string("2026-01-22")])
            let later = try await run(report, zone.merging(["from": "2026-01-22 14:00"]) { $1 }, in: database)
            #expect(later.rows.isEmpty)
        }
    }
}
