/// Reads lists of rows that may be an array, a single object or nothing. The path of an unreadable row is recorded; the
/// other rows are still read.
struct RowReader {
    /// The most rows that one list may have. The longest lists seen have some hundreds.
    static let rowsMax = 100_000
    /// The most unreadable rows that are recorded.
    static let unreadableMax = 1000

    private let text: JSONDocument
    private(set) var unreadable: [String] = []

    /// Creates a reader of lists in `text`.
    init(_ text: JSONDocument) {
        self.text = text
    }

    /// Returns the transactions at `value`.
    mutating func transactions(_ value: Int?, path: String) throws(AnswerUnreadable) -> [TransactionFields] {
        try rows(value, path: path) { TransactionFields(reading: $0, path: $1) }
    }

    /// Returns the renewals at `value`; `rows` identify the subscription of a renewal that does not name one.
    mutating func renewals(
        _ value: Int?, path: String, among rows: [TransactionFields]
    ) throws(AnswerUnreadable) -> [RenewalFields] {
        var known = KnownSubscriptions(rows)
        return try self.rows(value, path: path) { RenewalFields(reading: $0, path: $1, among: &known) }
    }

    /// Returns the single renewal of a legacy answer, whose fields are at its top level.
    mutating func legacyRenewal(_ top: LenientFields, among rows: [TransactionFields]) -> [RenewalFields] {
        guard let word = RenewalFields.firstWord(in: top) else { return [] }
        var known = KnownSubscriptions(rows)
        if let renewal = RenewalFields(reading: top, path: "", among: &known) { return [renewal] }
        // The renewal's subscription is unknown; without any row the renewal is also of no use.
        if !rows.isEmpty { remember(word) }
        return []
    }

    private mutating func rows<Row>(
        _ value: Int?, path: String, read: (LenientFields, String) -> Row?
    ) throws(AnswerUnreadable) -> [Row] {
        guard let value, !text.isAbsent(value) else { return [] }
        guard text.nodes[value].isArray else {
            return [row(LenientFields(text, at: value), path, read)].compactMap(\.self)
        }
        let elements = text.elements(value)
        guard elements.count <= Self.rowsMax else {
            throw AnswerUnreadable("an answer of more than \(Self.rowsMax) rows in \(path)")
        }
        guard let first = elements.first else { return [] }
        var fields = LenientFields(text, at: first)
        var rows: [Row] = []
        rows.reserveCapacity(elements.count)
        for (place, element) in elements.enumerated() {
            fields.turn(to: element)
            if let row = row(fields, Self.path(path, at: place), read) { rows.append(row) }
        }
        return rows
    }

    private mutating func row<Row>(
        _ fields: LenientFields, _ path: String, _ read: (LenientFields, String) -> Row?
    ) -> Row? {
        let row = read(fields, path)
        if row == nil { remember(path) }
        return row
    }

    private mutating func remember(_ path: String) {
        if unreadable.count < Self.unreadableMax { unreadable.append(path) }
    }

    /// Returns a path such as `latest_receipt_info[3]`. Every row has one, so it avoids the cost of interpolation.
    private static func path(_ list: String, at place: Int) -> String {
        var path = list
        path.reserveCapacity(list.utf8.count + 8)
        path += "["
        path += String(place)
        path += "]"
        return path
    }
}
