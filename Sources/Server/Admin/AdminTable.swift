import Foundation
import Subscriptions

/// A table of a page, with a caption, headings, and a sentence that replaces an empty one.
struct AdminTable {
    let caption: String
    let columns: [Column]
    let rows: [Row]
    let empty: String
    let isEmpty: Bool
    /// Whether each row becomes a card on a phone.
    let isStacked: Bool

    struct Column {
        let title: String
        /// Whether every cell is a number, so that the heading is right-aligned too.
        let isNumber: Bool
    }

    struct Row {
        let heading: Cell
        let cells: [Cell]
    }

    struct Cell {
        let text: String
        var link: String?
        /// The instant in ISO 8601, for a cell that shows one.
        var instant: String?
        /// Whether it is a number, which is right-aligned.
        var isNumber = false
        /// Whether it holds sentences, which need room.
        var isProse = false
        /// The colour's class in the style sheet.
        var style: String?
        /// The class of the badge that holds the text; nil for plain text.
        var badge: String?
        /// The heading of its column, which a phone shows beside it; nil in a table that stays one.
        var label: String?
        var list: List?
    }

    /// A list that a reader opens and closes.
    struct List {
        /// What is shown while it is closed.
        let summary: String
        let lines: [Line]
    }

    /// A line of a list, with the instant before the text.
    struct Line {
        let text: String
        let readable: String
        let instant: String

        init(_ text: String, at instant: Instant) {
            self.text = text
            readable = Server.readable(instant)
            self.instant = instant.iso8601
        }
    }

    init(_ caption: String, _ columns: [String], empty: String = "None.", isStacked: Bool = false, _ rows: [[Cell]]) {
        self.caption = caption
        self.columns = columns.enumerated().map { index, title in
            let isNumber = rows.allSatisfy { $0.indices.contains(index) && $0[index].isNumber }
            return Column(title: title, isNumber: isNumber && !rows.isEmpty)
        }
        self.empty = empty
        self.isStacked = isStacked
        self.rows = rows.compactMap { cells in
            let labelled = zip(cells, columns).map { isStacked ? $0.labelled($1) : $0 }
            return labelled.first.map { Row(heading: $0, cells: Array(labelled.dropFirst())) }
        }
        isEmpty = rows.isEmpty
    }

    /// Creates a table with a row for each item; each column has its title and its cell in a row.
    init<Item>(
        _ caption: String, of items: [Item], empty: String = "None.", isStacked: Bool = false,
        _ columns: [(title: String, cell: (Item) -> Cell)]
    ) {
        self.init(
            caption, columns.map(\.title), empty: empty, isStacked: isStacked,
            items.map { item in columns.map { $0.cell(item) } })
    }

    init(_ caption: String, facts: [(String, Cell)]) {
        self.init(caption, ["Fact", "Value"], facts.map { [.text($0), $1] })
    }
}

extension AdminTable.Cell {
    fileprivate func labelled(_ label: String) -> AdminTable.Cell {
        var cell = self
        cell.label = label
        return cell
    }

    /// Returns plain text, or a dash when it is unknown.
    static func text(_ text: String?, link: String? = nil) -> AdminTable.Cell {
        AdminTable.Cell(text: text ?? "–", link: link)
    }

    /// Returns a state with its reason as everywhere else, such as `awaiting_renewal (renewal)`, and what follows it.
    static func state(_ state: String, _ reason: String?, more: String = "") -> AdminTable.Cell {
        let badge =
            switch State(rawValue: state) {
            case .active: "good"
            case .gracePeriod, .awaitingRenewal: "wait"
            case .billingRetry, .revoked: "bad"
            case .expired, nil: "over"
            }
        return AdminTable.Cell(text: (reason.map { "\(state) (\($0))" } ?? state) + more, badge: badge)
    }

    /// Returns the words of a person, or a dash when there are none.
    static func prose(_ text: String?) -> AdminTable.Cell {
        AdminTable.Cell(text: text ?? "–", isProse: text != nil)
    }

    static func number(_ number: some BinaryInteger) -> AdminTable.Cell {
        AdminTable.Cell(text: grouped(Int64(number)), isNumber: true)
    }

    /// Returns the cell of an amount in thousandths of a currency's unit.
    static func amount(_ milliunits: Int64) -> AdminTable.Cell {
        AdminTable.Cell(text: amountText(milliunits), isNumber: true)
    }

    /// Returns an instant in UTC, as the foot of every page says, or `otherwise` when there is none.
    static func instant(_ instant: Instant?, orElse otherwise: String = "–", toMinute: Bool = false) -> AdminTable.Cell
    {
        guard let instant else { return AdminTable.Cell(text: otherwise) }
        return AdminTable.Cell(text: String(readable(instant).prefix(toMinute ? 16 : 19)), instant: instant.iso8601)
    }
}

/// Returns an instant for people: in UTC, to the second.
func readable(_ instant: Instant) -> String {
    let text = instant.iso8601
    guard text.count == 24, text.hasSuffix("Z") else { return text }
    return text.prefix(19).replacing("T", with: " ") + " UTC"
}

/// Returns a length of time for people, such as `2 h 5 min`: its two largest units, down to the minute.
func lasting(_ seconds: Double) -> String {
    let minutes = Int64(max(0, seconds) / 60)
    let (days, hours) = (minutes / 1_440, minutes / 60 % 24)
    if days > 0 { return "\(grouped(days)) d \(hours) h" }
    return hours > 0 ? "\(hours) h \(minutes % 60) min" : "\(minutes) min"
}

/// Returns a whole number with a narrow no-break space between groups of three digits.
func grouped(_ number: Int64) -> String {
    let digits = Array(String(number.magnitude))
    var text = number < 0 ? "−" : ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index).isMultiple(of: 3) { text += "\u{202F}" }
        text.append(digit)
    }
    return text
}

/// Returns an amount in thousandths of a currency's unit as text with two decimals. What rounds to 0 has no sign.
func amountText(_ milliunits: Int64) -> String {
    let cents = (milliunits.magnitude + 5) / 10
    let fraction = cents % 100
    return (milliunits < 0 && cents > 0 ? "−" : "") + grouped(Int64(cents / 100)) + "." + (fraction < 10 ? "0" : "")
        + String(fraction)
}

func address(_ path: String, _ values: KeyValuePairs<String, String>) -> String {
    path + "?" + values.map { "\($0)=\($1.percentEncoded)" }.joined(separator: "&")
}

extension String {
    /// The text for a part of an address: all but letters, digits and `-._~` is percent-encoded.
    var percentEncoded: String {
        let allowed = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "-._~"))
        return addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
    }
}
