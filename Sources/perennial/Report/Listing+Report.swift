import Postgres
import SQL
import Server
import Subscriptions

extension Listing {
    /// The settings of a report's transaction. A report reads one snapshot of the data. Compiling its plan takes longer
    /// than it saves, sorts should fit into memory, and rows of parallel workers cost less than PostgreSQL assumes.
    private static let preparation = """
        SET TRANSACTION READ ONLY; SET LOCAL jit = off; SET LOCAL work_mem = '64MB';
        SET LOCAL parallel_tuple_cost = 0.01
        """

    /// Runs a report with the values of its variables, alone in its transaction.
    init(of report: ReportStatement, _ values: [String], in transaction: Transaction) throws {
        try transaction.script(Self.preparation)
        let quote = Statement(name: Queries.quoteValues.name, sql: Queries.quoteValues.text)
        let quoted = try transaction.query(quote, [.texts(values)])
        let sql = report.sql(literals: try quoted.map { try $0.text("literal") })
        try self.init(reportRows: transaction.query(Statement(name: "report", sql: Self.described(sql))))
    }

    /// Returns a statement with every row as names, kinds and texts, so that a report may have any columns. JSON (not
    /// `jsonb`) keeps their order.
    static func described(_ sql: String) -> String {
        """
        SELECT names, kinds, texts
        FROM (
        \(sql)
        ) report
        CROSS JOIN LATERAL (
            SELECT array_agg(f.key ORDER BY f.place) AS names,
                   array_agg(json_typeof(f.value) ORDER BY f.place) AS kinds,
                   array_agg(f.value #>> '{}' ORDER BY f.place) AS texts
            FROM json_each(row_to_json(report)) WITH ORDINALITY AS f (key, value, place)
        ) described
        """
    }

    /// Creates a listing of described rows; a report without rows has no columns to show.
    init(reportRows: [Row]) throws {
        self.init(columns: try reportRows.first?.texts("names") ?? [])
        rows = try reportRows.map { row in
            try zip(row.texts("names"), zip(row.texts("kinds"), row.textElements("texts"))).map { name, value in
                switch value {
                case (_, nil): .null
                // Our own ids count nothing.
                case ("number", let text?) where name.hasSuffix("_id"): .string(text)
                case ("boolean", let text?): .bool(text == "true")
                case ("number", let text?): Int64(text).map { .integer($0) } ?? .string(text)
                case (_, let text?): Self.value(text)
                }
            }
        }
    }

    /// Whether a report is a check and found something: a report named so has rows, another one counts a row as
    /// unexplained.
    func isFinding(of report: String) -> Bool {
        if report.hasSuffix("_check") { return !rows.isEmpty }
        guard let column = columns.firstIndex(of: "unexplained") else { return false }
        return rows.contains { $0[column] != .integer(0) }
    }

    /// Returns an instant in the usual form, whatever the session's time zone; a date or any other text is unchanged.
    private static func value(_ text: String) -> JSONValue {
        guard text.contains("T"), let instant = Instant(iso8601: text) else { return .string(text) }
        return .string(instant.iso8601)
    }
}
