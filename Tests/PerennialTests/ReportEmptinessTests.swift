import JSON
import Postgres
import SQL
import Testing
import TestSupport

@testable import perennial

/// The tests only read.
private let history = OncePerSuite(ReportFigureTests.withHistory)

@Suite("A report without rows says why", history) struct ReportEmptinessTests {
    private func emptiness(_ given: [String: String], in database: Database) async throws -> String {
        let statement = ReportStatement(try #require(Reports.all.first { $0.name == "revenue" }).text)
        let values = try statement.values(given, report: "revenue")
        return try await database.transaction {
            #expect(try Listing(of: statement, values, in: $0).rows.isEmpty)
            return try statement.emptiness(values, in: $0)
        }
    }

    @Test(arguments: [
        (["from": "2026-02-01", "until": "2026-01-01"], "--from 2026-02-01 is not before --until 2026-01-01"),
        (["from": "2999-02-01"], "--from 2999-02-01 is in the future"),
        (["from": "2020-02-01", "until": "2020-02-02"], "nothing that is stored belongs into this report"),
    ])
    func `dates that hold nothing`(given: [String: String], sentence: String) async throws {
        try await history.use { database in
            let said = try await emptiness(given, in: database)
            #expect(said == "No rows: \(sentence).")
        }
    }

    @Test func `no app, no receipt, and the other environment`() async throws {
        try await withMigratedDatabase { database, _ in
            #expect(try await emptiness([:], in: database).hasPrefix("No rows: there is no app yet"))
            try await database.transaction {
                try $0.script("INSERT INTO ledger.app (bundle_id, name) VALUES ('com.example.app', 'Example')")
            }
            let app = ["bundle_id": "com.example.app"]
            let none = "No rows: there is no receipt of com.example.app yet."
            #expect(try await emptiness(app, in: database) == none)
            try await database.transaction {
                try $0.script(
                    """
                    INSERT INTO ledger.receipt (app_id, digest, data, received_at)
                    SELECT app_id, sha256('r'), 'r', now() FROM ledger.app;
                    INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
                    SELECT app_id, 'Sandbox', 'S' FROM ledger.app
                    """)
            }
            #expect(try await emptiness(app, in: database).contains("--set environment=Sandbox"))
        }
    }
}
