import ArgumentParser
import Foundation
import Server
import Tracking

extension ListingFormat: ExpressibleByArgument {}

/// The flag of every command that prints a listing.
struct FormatFlag: ParsableArguments {
    @Option(help: "table for people, csv, or json, which is stable.")
    var format = ListingFormat.table

    /// Prints a listing in the requested format; a table on a terminal fits into it.
    func show(_ listing: Listing) {
        listing.show(as: format)
    }
}

/// Rows with named columns, for a table, CSV and JSON.
struct Listing {
    /// Names of the columns in `snake_case`; they are the keys of the JSON form.
    let columns: [String]
    /// One value for each column.
    var rows: [[JSONValue]] = []

    /// Returns the listing in the requested format.
    func rendered(as format: ListingFormat) -> String {
        switch format {
        case .table: table
        case .csv: csv
        case .json: json.rendered(pretty: true)
        }
    }

    /// Prints the listing. A table is cut to a terminal's width; anything else gets every value in full.
    func show(as format: ListingFormat) {
        switch (format, Terminal.style) {
        case (.table, let style?): write(table(in: style) + "\n", to: .standardOutput)
        case (.table, nil): printLine(table)
        case (.csv, _), (.json, _): printExactly(rendered(as: format))
        }
    }

    /// The listing as an array of objects.
    var json: JSONValue {
        .array(rows.map { row in .object(Dictionary(zip(columns, row)) { first, _ in first }) })
    }

    /// The listing as aligned columns for human readers: whole numbers to the right, a dash for an unknown value.
    var table: String {
        lines(naturalWidths).joined(separator: "\n")
    }

    /// The headings and rows as texts without anything that a terminal would obey.
    private var cells: [[String]] {
        [columns.map { $0.uppercased() }] + rows.map { $0.map { Self.text($0).visible } }
    }

    /// The width of each column's longest cell.
    var naturalWidths: [Int] {
        let cells = cells
        return columns.indices.map { column in cells.reduce(0) { max($0, $1[column].count) } }
    }

    /// The headings and rows as lines with columns of these widths; longer cells are shortened.
    func lines(_ widths: [Int]) -> [String] {
        let areNumbers = columns.indices.map(isNumeric)
        return cells.map { cells in
            let padded = columns.indices.map { column in
                let cell = cells[column].shortened(to: widths[column])
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                return areNumbers[column] ? padding + cell : cell + padding
            }
            return String(padded.joined(separator: "  ").reversed().drop { $0 == " " }.reversed())
        }
    }

    /// The listing as comma-separated values (RFC 4180) with a heading. An unknown value is an empty field, and no text
    /// is a formula.
    var csv: String {
        let lines = [columns.map { JSONValue.string($0) }] + rows
        return lines.map { $0.map(Self.field).joined(separator: ",") }.joined(separator: "\r\n")
    }

    func isNumeric(_ column: Int) -> Bool {
        rows.contains { $0[column] != .null }
            && rows.allSatisfy { row in
                switch row[column] {
                case .null, .integer: true
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
        case .null, .bool, .integer, .object: text(value)
        }
    }

    static func text(_ value: JSONValue) -> String {
        switch value {
        case .null: "-"
        case .bool(let truth): truth ? "yes" : "no"
        case .integer(let number): String(number)
        case .string(let text): text
        case .array(let values): values.map(text).joined(separator: " ")
        case .object: value.rendered()
        }
    }
}

/// A format of a listing.
enum ListingFormat: String {
    /// Aligned columns for human readers.
    case table
    /// Comma-separated values.
    case csv
    /// An array of objects; stable.
    case json

    /// Prints a listing that was rendered in this format.
    func show(_ text: String) {
        switch self {
        case .table: printLine(text)
        case .csv, .json: printExactly(text)
        }
    }
}
