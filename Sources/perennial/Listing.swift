import ArgumentParser
import Foundation
import JSON
import Postgres
import SQL
import Subscriptions
import Tracking

/// The flag of every command that prints a listing.
struct FormatFlag: ParsableArguments {
    @Option(help: "table for people, csv, or json, which is stable.")
    var format = ListingFormat.table

    /// Prints a listing. A table is cut to a terminal's width; anything else gets every value in full.
    func show(_ listing: Listing) {
        switch format {
        case .table: printStyled(listing.table(in: Terminal.style))
        case .csv: printExactly(listing.csv)
        case .json: printExactly(listing.json.rendered(pretty: true))
        }
    }
}

/// Rows with named columns, for a table, CSV and JSON.
struct Listing {
    /// Names of the columns in `snake_case`; they are the keys of the JSON form.
    let columns: [String]
    /// One value for each column.
    var rows: [[JSONValue]] = []

    var json: JSONValue {
        .array(rows.map { row in .object(Dictionary(zip(columns, row)) { first, _ in first }) })
    }

    /// The listing as aligned columns for human readers: whole numbers to the right, a dash for an unknown value.
    var table: String {
        lines(naturalWidths).joined(separator: "\n")
    }

    private var cells: [[String]] {
        [columns.map { $0.uppercased() }] + rows.map { $0.map { Self.text($0).visible } }
    }

    var naturalWidths: [Int] {
        let cells = cells
        return columns.indices.map { column in cells.reduce(0) { max($0, $1[column].cells) } }
    }

    /// The headings and rows as lines with columns of these widths; longer cells are shortened.
    func lines(_ widths: [Int]) -> [String] {
        let areNumbers = columns.indices.map(isNumeric)
        return cells.map { cells in
            let padded = columns.indices.map { column in
                cells[column].shortened(to: widths[column]).padded(to: widths[column], isNumber: areNumbers[column])
            }
            return String(padded.joined(separator: Self.gap).reversed().drop { $0 == " " }.reversed())
        }
    }

    /// Comma-separated values (RFC 4180) with a heading. An unknown value is an empty field, and no text is a formula.
    var csv: String {
        let lines = [columns.map { JSONValue.string($0) }] + rows
        return lines.map { $0.map(Self.field).joined(separator: ",") }.joined(separator: "\r\n")
    }

    func isNumeric(_ column: Int) -> Bool {
        rows.contains { $0[column] != .null }
            && rows.allSatisfy { row in
                switch row[column] {
                case .null, .integer, .number: true
                case .bool, .string, .array, .object: false
                }
            }
    }

    private static func field(_ value: JSONValue) -> String {
        let text = value == .null ? "" : csvText(value)
        guard text.contains(where: { $0 == "," || $0 == "\"" || $0.isNewline }) else { return text }
        return "\"\(text.replacing("\"", with: "\"\""))\""
    }

    private static func csvText(_ value: JSONValue) -> String {
        switch value {
        case .string, .array: text(value).spreadsheetText
        case .null, .bool, .integer, .number, .object: text(value)
        }
    }

    static func text(_ value: JSONValue) -> String {
        switch value {
        case .null: "-"
        case .bool(let truth): truth ? "yes" : "no"
        case .integer(let number): String(number)
        case .number(let text), .string(let text): text
        case .array(let values): values.map(text).joined(separator: " ")
        case .object: value.rendered()
        }
    }
}

enum TextForm: String, ExpressibleByArgument, CaseIterable { case text, json }

enum TableForm: String, ExpressibleByArgument, CaseIterable { case table, json }

/// A format of a listing; its JSON is stable.
enum ListingFormat: String, ExpressibleByArgument { case table, csv, json }

/// How a table is shown on a terminal: in its width, with headings that stand out.
struct TerminalStyle: Sendable, Hashable {
    /// Cells a line has room for.
    let width: Int
    let hasColour: Bool

    /// Bold text (ECMA-48), where colours are wanted.
    func heading(_ text: String) -> String {
        hasColour && !text.isEmpty ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }
}

extension Array {
    /// Returns a listing with a row for each element; each column has its name and its value in a row.
    func listing(_ columns: [(name: String, value: (Element) -> JSONValue)]) -> Listing {
        Listing(columns: columns.map(\.name), rows: map { element in columns.map { $0.value(element) } })
    }
}

extension Listing {
    /// The least cells that a shortened column keeps.
    private static let cellMin = 8
    private static let gap = "  "

    /// The listing whole where there is no terminal. For one, in its width: one row vertically, more rows as a table
    /// whose longest cells are shortened in their middle, and each row vertically where even that is too wide.
    func table(in style: TerminalStyle?) -> String {
        guard let style else { return table }
        guard rows.count > 1 else { return rows.isEmpty ? table : block(of: rows[0], style) }
        guard let widths = fitted(to: style.width) else {
            return rows.map { block(of: $0, style) }.joined(separator: "\n\n")
        }
        return lines(widths).enumerated().map { $0 == 0 ? style.heading($1) : $1 }.joined(separator: "\n")
    }

    /// The width of each column so that a line fits; nil where columns would become unreadable.
    func fitted(to width: Int) -> [Int]? {
        var widths = naturalWidths
        let mins = columns.indices.map { column in
            isNumeric(column) ? widths[column] : min(widths[column], max(columns[column].cells, Self.cellMin))
        }
        var excess = widths.reduce(0, +) + Self.gap.count * max(0, columns.count - 1) - width
        while excess > 0 {
            let shrinkable = widths.indices.filter { widths[$0] > mins[$0] }
            guard let widest = shrinkable.max(by: { widths[$0] < widths[$1] }) else { return nil }
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }

    private func block(of row: [JSONValue], _ style: TerminalStyle) -> String {
        let names = columns.map { $0.uppercased() }
        let width = names.reduce(0) { max($0, $1.cells) }
        return zip(names, row).map { name, value in
            style.heading(name) + "".padded(to: width - name.cells) + Self.gap + Self.text(value).visible
        }.joined(separator: "\n")
    }
}

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

    /// Whether a check found something: a report named so has rows, another one counts a row as unexplained.
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
