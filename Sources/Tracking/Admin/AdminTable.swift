import Foundation
import Subscriptions

/// A table as a page shows it: with a caption, headings, and a sentence when it is empty.
struct AdminTable {
    /// What it tells.
    let caption: String
    /// Its headings.
    let columns: [String]
    /// One cell for each column.
    var rows: [Row]
    /// What is said when there are no rows.
    let empty: String

    /// A row; the first cell is its heading.
    struct Row {
        let heading: Cell
        let cells: [Cell]
    }

    /// A cell.
    struct Cell {
        let text: String
        /// Where it leads.
        var link: String?
        /// The instant in ISO 8601, when it is one.
        var instant: String?
        /// Whether it is a number, which stands on the right.
        var isNumber = false
    }

    /// Whether there is anything to show.
    let isEmpty: Bool

    init(_ caption: String, _ columns: [String], empty: String = "None.", _ rows: [[Cell]]) {
        self.caption = caption
        self.columns = columns
        self.empty = empty
        self.rows = rows.compactMap { cells in
            cells.first.map { Row(heading: $0, cells: Array(cells.dropFirst())) }
        }
        isEmpty = rows.isEmpty
    }
}

extension AdminTable.Cell {
    /// Plain text, a dash when it is unknown.
    static func text(_ text: String?, link: String? = nil) -> AdminTable.Cell {
        AdminTable.Cell(text: text ?? "–", link: link)
    }

    /// A whole number.
    static func number(_ number: some BinaryInteger) -> AdminTable.Cell {
        AdminTable.Cell(text: grouped(Int64(number)), isNumber: true)
    }

    /// An amount in thousandths of a currency's unit.
    static func amount(_ milliunits: Int64) -> AdminTable.Cell {
        AdminTable.Cell(text: amountText(milliunits), isNumber: true)
    }

    /// An instant in UTC, a dash when there is none.
    static func instant(_ instant: Instant?, orElse otherwise: String = "–") -> AdminTable.Cell {
        guard let instant else { return AdminTable.Cell(text: otherwise) }
        return AdminTable.Cell(text: readable(instant), instant: instant.iso8601)
    }
}

/// An instant for people: to the second, in UTC.
func readable(_ instant: Instant) -> String {
    let text = instant.iso8601
    guard text.count == 24, text.hasSuffix("Z") else { return text }
    return text.prefix(19).replacing("T", with: " ") + " UTC"
}

/// A whole number with a thin space between groups of three digits.
func grouped(_ number: Int64) -> String {
    let digits = Array(String(number.magnitude))
    var text = number < 0 ? "−" : ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index).isMultiple(of: 3) { text += "\u{202F}" }
        text.append(digit)
    }
    return text
}

/// An amount in thousandths of a currency's unit, with two decimals.
func amountText(_ milliunits: Int64) -> String {
    let cents = (milliunits.magnitude + 5) / 10
    let fraction = cents % 100
    return (milliunits < 0 ? "−" : "") + grouped(Int64(cents / 100)) + "." + (fraction < 10 ? "0" : "")
        + String(fraction)
}

/// The address of a page with values in its query.
func address(_ path: String, _ values: KeyValuePairs<String, String>) -> String {
    var allowed = CharacterSet.alphanumerics
    allowed.insert(charactersIn: "-._~")
    let query = values.map { "\($0)=\($1.addingPercentEncoding(withAllowedCharacters: allowed) ?? "")" }
    return path + "?" + query.joined(separator: "&")
}
