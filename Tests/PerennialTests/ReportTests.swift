import JSON
import Postgres
import Server
import SQL
import Testing
import TestSupport

@testable import perennial

@Suite("The command fills in the variables of a report and prints it") struct ReportTests {
    static let text = """
        -- What it is for: psql -v from=x
        \\if :{?from} \\else \\set from -infinity \\endif
        \\if :{?bundle_id} \\else \\set bundle_id '' \\endif
        SELECT day::date, ':kept' FROM t
        WHERE at >= :'from'::timestamptz AND at < :'until'::timestamptz AND :'from' <> ''
        ORDER BY 1;

        """

    @Test func `psql's variables become literals`() throws {
        let statement = ReportStatement(Self.text)
        #expect(
            statement.sql(literals: ["'a'", "'it''s :''from'''"]) == """
                SELECT day::date, ':kept' FROM t
                WHERE at >= 'a'::timestamptz AND at < 'it''s :''from'''::timestamptz AND 'a' <> ''
                ORDER BY 1
                """)
        #expect(statement.variables == ["from", "until"])
        #expect(statement.defaults == ["from": "-infinity", "bundle_id": ""])
        #expect(try statement.values(["until": "2026-01-01"], report: "r") == ["-infinity", "2026-01-01"])
        #expect(throws: Failure.self) { try statement.values([:], report: "r") }
        #expect(throws: Failure.self) { try statement.values(["until": "x", "untli": "y"], report: "r") }
    }

    @Test func `a value stays a value, whatever is in it`() async throws {
        let report = ReportStatement("SELECT :'odd' AS reported, 1 AS one;")
        try await withTestDatabase { database, _ in
            for odd in ["'; DROP SCHEMA ledger; --", "\\'", "'\u{301}; SELECT 2 --", ":'odd'", "$1", "\n"] {
                let listing = try await database.transaction { try Listing(of: report, [odd], in: $0) }
                #expect(listing.rows == [[.string(odd), .integer(1)]])
            }
        }
    }

    @Test func `every report has only variables with defaults and nothing of psql left`() throws {
        #expect(!Reports.all.isEmpty)
        for report in Reports.all {
            let statement = ReportStatement(report.text)
            let values = try statement.values([:], report: report.name)
            let sql = statement.sql(literals: values.map { _ in "''" })
            #expect(!sql.contains("\\") && !sql.contains(":'"))
        }
    }
}
