import ArgumentParser
import Server
import Tracking

extension ListingFormat: ExpressibleByArgument {}

/// The flag of every command that prints a listing.
struct FormatFlag: ParsableArguments {
    @Option(help: "table for people, csv, or json, which is stable.")
    var format = ListingFormat.table

    /// Prints a listing in the requested format.
    func show(_ listing: Listing) {
        format.show(listing.rendered(as: format))
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

    /// The listing as an array of objects.
    var json: JSONValue {
        .array(rows.map { row in .object(Dictionary(zip(columns, row)) { first, _ in first }) })
    }

    /// The listing as aligned columns for human readers: whole numbers to the right, a dash for an unknown value.
    var table: String {
        let lines = [columns.map { $0.uppercased() }] + rows.map { $0.map { Self.text($0).visible } }
        let widths = columns.indices.map { column in lines.reduce(0) { max($0, $1[column].count) } }
        let areNumbers = columns.indices.map(isNumeric)
        return lines.map { cells in
            let padded = columns.indices.map { column in
                let padding = String(repeating: " ", count: widths[column] - cells[column].count)
                return areNumbers[column] ? padding + cells[column] : cells[column] + padding
            }
            return String(padded.joined(separator: "  ").reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }

    /// The listing as comma-separated values (RFC 4180) with a heading. An unknown value is an empty field, and no text
    /// is a formula.
    var csv: String {
        let lines = [columns.map { JSONValue.string($0) }] + rows
        return lines.map { $0.map(Self.field).joined(separator: ",") }.joined(separator: "\r\n")
    }

    private func isNumeric(_ column: Int) -> Bool {
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

    private static func text(_ value: JSONValue) -> String {
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
