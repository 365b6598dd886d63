import Foundation
import JSON
import Postgres
import SQL
import Testing
import TestSupport
import Tracking

@testable import perennial

/// Each report adds to it, one after the other.
private let history: OncePerSuite<(Database, KeptRows)> = OncePerSuite { lend in
    try await withMigratedDatabase { database, connectionString in
        try await ReportFigureTests.fill(database)
        try await lend((database, try await KeptRows(in: connectionString)))
    }
}

/// Every report against a small history whose figures were computed by hand, with the working beside them.
///
/// `Tests/Fixtures/reports/NAME.sql` or `NAME-case.sql` adds to `history.sql` and sets the report's variables in lines
/// `-- set name=value`; `.expected.csv` is what `perennial report NAME --format csv` says then.
@Suite("Every report has the figures that were computed by hand", history) struct ReportFigureTests {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures/reports")

    /// The files' names without their ending; empty if the folder cannot be read, which a test notices.
    static let cases: [String] = {
        let files = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        return files.filter { $0.hasSuffix(".sql") && $0 != "history.sql" }.map { String($0.dropLast(4)) }.sorted()
    }()

    /// Makes a database with the history, and drops it afterwards.
    @Sendable static func withHistory(_ body: @escaping @Sendable (Database) async throws -> Void) async throws {
        try await withMigratedDatabase { database, _ in
            try await fill(database)
            try await body(database)
        }
    }

    static func fill(_ database: Database) async throws {
        let history = try String(contentsOf: folder.appending(path: "history.sql"), encoding: .utf8)
        try await database.transaction { try $0.script(history) }
    }

    static func report(of name: String) -> String {
        String(name.prefix { $0 != "-" })
    }

    static func variables(in text: String) -> [String: String] {
        text.matches(of: #/-- set (?<name>[a-z_]+)=(?<value>.*)/#).reduce(into: [:]) { values, match in
            values[String(match.output.name)] = String(match.output.value)
        }
    }

    /// The charges, refunds and prorations about which `ledger.money_of`, for each stream, and `ledger.revenue_of`, for
    /// all, differ as known at an instant.
    static func otherMoney(in database: Database, knownAt: String) async throws -> Int64 {
        let sql = """
            WITH whole AS (
                SELECT charge_kind, stream_id, occurred_at, kind, product_id, amount_milliunits, currency, price_basis
                FROM ledger.revenue_of($1::text::timestamptz, NULL)
            ), part AS (
                SELECT s.kind, s.id, m.occurred_at, m.kind, m.product_id, m.amount_milliunits, m.currency, m.price_basis
                FROM (SELECT 'subscription' AS kind, subscription_id AS id FROM ledger.subscription
                      UNION ALL SELECT 'purchase', purchase_id FROM ledger.purchase) s
                CROSS JOIN LATERAL ledger.money_of(s.kind, s.id, $1::text::timestamptz, NULL) m)
            SELECT count(*) AS differing
            FROM ((TABLE whole EXCEPT ALL TABLE part) UNION ALL (TABLE part EXCEPT ALL TABLE whole)) d
            """
        return try await database.query(Statement(name: "money", sql: sql), [.text(knownAt)]).first?.int8("differing")
            ?? -1
    }

    @Test func `every report has figures computed by hand`() {
        #expect(Set(Reports.all.map(\.name)) == Set(Self.cases.map(Self.report)))
    }

    @Test(.serialized, arguments: cases)
    func `a report says what was computed by hand`(name: String) async throws {
        let fixture = try String(contentsOf: Self.folder.appending(path: "\(name).sql"), encoding: .utf8)
        let expected = try String(contentsOf: Self.folder.appending(path: "\(name).expected.csv"), encoding: .utf8)
        let file = try #require(Reports.all.first { $0.name == Self.report(of: name) })
        let statement = ReportStatement(file.text)
        let values = try statement.values(Self.variables(in: fixture), report: file.name)
        try await history.use { database, rows in
            try await rows.putBack()
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Array(0..<32)))
            try await database.transaction { try $0.script(fixture) }
            func expectAsComputed(_ how: Comment) async throws {
                let csv = try await database.transaction { try Listing(of: statement, values, in: $0).csv }
                #expect(csv.replacing("\r\n", with: "\n") == expected.trimmingCharacters(in: .newlines), how)
            }
            try await expectAsComputed("from the history")
            for known in ["infinity", "2026-02-10", "2026-03-05", "2026-05-05"] {
                let differing = try await Self.otherMoney(in: database, knownAt: known)
                #expect(differing == 0, "messages to webhooks have other money as known at \(known)")
            }
            guard file.name != "summaries_check" else { return }
            while try await ledger.operations.summarise(isFirstRound: true)?.isBehind == true {}
            try await expectAsComputed("from the rows of the summaries")
            try await database.transaction {
                try $0.script("UPDATE ledger.summarised SET price_mark = NULL WHERE subscription_id % 2 = 0")
            }
            try await expectAsComputed("from both")
        }
    }
}
