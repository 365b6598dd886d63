import Tracking

/// Rows with named columns, for a table, CSV or JSON alike.
struct Listing {
    /// Names of the columns in `snake_case`; they are the keys of the JSON form.
    let columns: [String]
    /// One value for each column.
    var rows: [[JSONValue]] = []

    /// The listing in the asked form.
    func rendered(as format: ListingFormat) -> String {
        switch format {
        case .table: table
        case .csv: csv
        case .json: json.rendered(pretty: true)
        }
    }

    /// An array of objects.
    var json: JSONValue {
        .array(rows.map { row in .object(Dictionary(zip(columns, row)) { first, _ in first }) })
    }

    /// Aligned columns for people: whole numbers to the right, a dash for what is unknown.
    var table: String {
        let cells = rows.map { $0.map { Cell($0) } }
        let widths = columns.indices.map { column in
            cells.reduce(columns[column].count) { max($0, $1[column].text.count) }
        }
        let heading = columns.indices.map { Cell(text: columns[$0].uppercased(), isNumber: isNumeric($0)) }
        return ([heading] + cells).map { row in
            let line = zip(row, widths).map { $0.padded(to: $1) }.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }

    /// Comma-separated values (RFC 4180) with a heading; an unknown value is an empty field.
    var csv: String {
        let lines = [columns.map { JSONValue.string($0) }] + rows
        return lines.map { $0.map(Self.field).joined(separator: ",") }.joined(separator: "\r\n")
    }

    private func isNumeric(_ column: Int) -> Bool {
        !rows.isEmpty && rows.allSatisfy { $0[column] == .null || Cell($0[column]).isNumber }
    }

    private static func field(_ value: JSONValue) -> String {
        let text = value == .null ? "" : Cell(value).text
        guard text.contains(where: { $0 == "," || $0 == "\"" || $0.isNewline }) else { return text }
        return "\"\(text.replacing("\"", with: "\"\""))\""
    }
}

/// A form of a listing.
enum ListingFormat: String {
    /// Aligned columns for people.
    case table
    /// Comma-separated values.
    case csv
    /// An array of objects; stable.
    case json
}

/// One value of a table as text.
private struct Cell {
    let text: String
    let isNumber: Bool

    init(text: String, isNumber: Bool = false) {
        self.text = text
        self.isNumber = isNumber
    }

    init(_ value: JSONValue) {
        switch value {
        case .null: self.init(text: "-")
        case .bool(let truth): self.init(text: truth ? "yes" : "no")
        case .integer(let number): self.init(text: String(number), isNumber: true)
        case .string(let text): self.init(text: text)
        case .array(let values): self.init(text: values.map { Cell($0).text }.joined(separator: " "))
        case .object: self.init(text: value.rendered())
        }
    }

    func padded(to width: Int) -> String {
        let padding = String(repeating: " ", count: max(0, width - text.count))
        return isNumber ? padding + text : text + padding
    }
}
