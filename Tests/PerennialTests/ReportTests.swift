import SQL
import Testing

@testable import perennial

@Suite struct ReportTests {
    static let text = """
        -- What it is for: psql -v from=x
        \\if :{?from}
        \\else
        \\set from -infinity
        \\endif
        SELECT day::date, ':kept' FROM t
        WHERE at >= :'from'::timestamptz AND at < :'until'::timestamptz AND :'from' <> ''
        ORDER BY 1;

        """

    @Test func `psql's variables become parameters`() throws {
        let statement = ReportStatement(Self.text)
        #expect(
            statement.sql == """
                SELECT day::date, ':kept' FROM t
                WHERE at >= $1::text::timestamptz AND at < $2::text::timestamptz AND $1::text <> ''
                ORDER BY 1
                """)
        #expect(statement.variables == ["from", "until"])
        #expect(try statement.values(["until": "2026-01-01"], report: "r") == ["-infinity", "2026-01-01"])
        #expect(throws: Failure.self) { try statement.values([:], report: "r") }
        #expect(throws: Failure.self) { try statement.values(["until": "x", "untli": "y"], report: "r") }
    }

    @Test func `every report has only variables with defaults and nothing of psql left`() throws {
        #expect(!Reports.all.isEmpty)
        for report in Reports.all {
            let statement = ReportStatement(report.text)
            #expect(try statement.values([:], report: report.name).count == statement.variables.count)
            #expect(!statement.sql.contains("\\") && !statement.sql.contains(":'"))
        }
    }
}
