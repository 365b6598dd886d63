import Foundation
import JSON
import Postgres
import Server
import SQL
import Testing
import TestSupport
import Tracking

@testable import perennial

/// The history, summarised. The tests only read.
private let summarised = OncePerSuite<(Database, SubscriptionLedger)> { lend in
    try await ReportFigureTests.withHistory { database in
        let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Array(0..<32)))
        while try await ledger.operations.summarise(isFirstRound: true)?.isBehind == true {}
        try await lend((database, ledger))
    }
}

/// The overview's summaries against the full reports, on the history whose figures were computed by hand.
@Suite("The overview's summaries agree with the full reports", summarised)
struct SummaryFigureTests {
    /// What a report says of a day, and what the summaries say of it: both as rows of the same columns.
    struct Comparison {
        let report: String
        let variables: [String: String]
        let columns: [String]
        let summary: String
    }

    static let comparisons = [
        Comparison(
            report: "mrr", variables: [:], columns: ["day", "currency", "mrr"],
            summary: """
                SELECT day::text AS day, currency, round(mrr / 1000, 3)::text AS mrr FROM (
                    SELECT d.day, c.currency,
                           sum(COALESCE(s.monthly_milliunits, 0)) OVER (PARTITION BY c.currency ORDER BY d.day) AS mrr
                    FROM (SELECT generate_series('2025-01-01', current_date, interval '1 day')::date AS day) d
                    CROSS JOIN (SELECT DISTINCT currency FROM perennial.day_summary WHERE currency <> '') c
                    LEFT JOIN perennial.day_summary s
                        ON s.day = d.day AND s.currency = c.currency AND s.environment = 'Production') reported
                WHERE mrr <> 0 ORDER BY day, currency
                """),
        Comparison(
            report: "churn", variables: ["bucket": "day"],
            columns: ["since", "new", "returned", "churned", "paying_at_end"],
            summary: """
                SELECT d.day::text AS since, COALESCE(sum(s.began), 0)::text AS new,
                       COALESCE(sum(s.returned), 0)::text AS returned, COALESCE(sum(s.churned), 0)::text AS churned,
                       sum(COALESCE(sum(s.paying), 0)) OVER (ORDER BY d.day)::text AS paying_at_end
                FROM (SELECT generate_series((SELECT min(day) FROM perennial.day_summary WHERE began > 0),
                                             current_date, interval '1 day')::date AS day) d
                LEFT JOIN perennial.day_summary s ON s.day = d.day AND s.environment = 'Production'
                GROUP BY d.day ORDER BY d.day
                """),
    ]

    private func rows(of listing: Listing, _ columns: [String]) throws -> [String] {
        let places = try columns.map { try #require(listing.columns.firstIndex(of: $0)) }
        return listing.rows.compactMap { row in
            let cells = places.map { row[$0] }
            guard cells.first != .null, !cells.contains(.null) else { return nil }
            return cells.map { Self.text($0) }.joined(separator: " ")
        }
    }

    private static func text(_ value: JSONValue) -> String {
        switch value {
        case .null: "null"
        case .bool(let truth): "\(truth)"
        case .integer(let number): "\(number)"
        case .number(let text), .string(let text): text.contains(".") ? (Double(text).map { "\($0)" } ?? text) : text
        case .array, .object: "?"
        }
    }

    @Test func `the summaries say what the full reports say`() async throws {
        try await summarised.use { database, _ in
            for one in Self.comparisons {
                let statement = ReportStatement(try #require(Reports.all.first { $0.name == one.report }).text)
                let values = try statement.values(one.variables, report: one.report)
                let reported = try await database.transaction { try Listing(of: statement, values, in: $0) }
                let summed = try await database.query(
                    .init(name: "summary of \(one.report)", sql: Listing.described(one.summary)))
                let expected = try rows(of: reported, one.columns)
                let actual = try rows(of: Listing(reportRows: summed), one.columns)
                #expect(expected.count > 50)
                #expect(expected == actual, "\(one.report)")
            }
            let check = ReportStatement(try #require(Reports.all.first { $0.name == "summaries_check" }).text)
            let values = try check.values([:], report: "summaries_check")
            let differences = try await database.transaction { try Listing(of: check, values, in: $0) }
            #expect(differences.rows.isEmpty)
        }
    }

    @Test func `the overview says what the full reports say of its last day`() async throws {
        try await summarised.use { database, ledger in
            let rows = try await database.query(
                .init(
                    name: "full",
                    sql: """
                        SELECT count(*) AS active,
                               count(*) FILTER (WHERE 'trial' = ANY (flags) AND NOT 'family_shared' = ANY (flags)) AS trial
                        FROM perennial.timeline
                        WHERE environment = 'Production' AND known_until IS NULL AND valid_from < date_trunc('day', now(), 'UTC')
                          AND access_until >= date_trunc('day', now(), 'UTC')
                        """))
            let full = try #require(rows.first)
            let last = try #require(try await ledger.admin.overview(app: nil, days: 30).days.dropLast().last)
            #expect(try last.active == full.int8("active"))
            #expect(try last.trial == full.int8("trial"))
        }
    }
}
