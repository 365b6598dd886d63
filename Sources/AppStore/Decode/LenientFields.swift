import JSON
import Subscriptions

/// The members of one object, read as Apple documents them, whatever type they arrived as.
struct LenientFields {
    private let text: JSONDocument
    /// The value of every slot. 0 means absent: node 0 is the whole text, which is never a member.
    private var values: [Int32]

    /// Reads the members of the object at `index`; none if the value is not an object.
    init(_ text: JSONDocument, at index: Int) {
        self.text = text
        values = [Int32](repeating: 0, count: FieldNames.known.count)
        find(in: index)
    }

    mutating func turn(to index: Int) {
        for slot in values.indices { values[slot] = 0 }
        find(in: index)
    }

    /// Examines every key once; of duplicate keys, the last counts.
    private mutating func find(in index: Int) {
        guard text.nodes[index].isObject else { return }
        let names = FieldNames.known
        text.nodes.withUnsafeBufferPointer { nodes in
            text.bytes.withUnsafeBytes { bytes in
                var key = index + 1
                while key < nodes[index].next {
                    if let slot = slot(of: nodes[key], in: bytes, names) { values[slot] = Int32(key + 1) }
                    key = Int(nodes[key + 1].next)
                }
            }
        }
    }

    private func slot(of key: JSONNode, in bytes: UnsafeRawBufferPointer, _ names: FieldNames) -> Int? {
        guard key.kind == .escapedString else {
            return names.slot(of: UnsafeRawBufferPointer(rebasing: bytes[key.content]))
        }
        return Array(text.unescaped(key).utf8).withUnsafeBytes { names.slot(of: $0) }
    }

    /// Returns the value of a field, of any type; nil if the key is missing.
    func value(_ field: AnswerField) -> Int? { value(field.slot) }

    private func value(_ slot: Int) -> Int? {
        let index = values[slot]
        return index == 0 ? nil : Int(index)
    }

    /// Returns the text of a field; nil if absent, null or empty.
    func text(_ field: AnswerField) -> String? { value(field.slot).flatMap { text.scalar($0) } }

    /// Returns one form of an instant as text; nil if absent, null or empty.
    func text(_ date: AnswerDate, _ form: AnswerDate.Form) -> String? {
        value(date.slot(form)).flatMap { text.scalar($0) }
    }

    /// Returns the text of a field in a form that a column can store; nil if absent, null or empty.
    func word(_ field: AnswerField) -> String? { text(field)?.storable }

    /// Returns an id: a word with every digit, even if it arrived as a JSON integer of any length.
    func identifier<Tag>(_ field: AnswerField) -> Identifier<Tag>? {
        guard let index = value(field.slot), let id = text.scalar(index) else { return nil }
        // A proxy that converts numbers to floating point writes 1.0E15: below 2^53 the integer is still exact.
        guard text.digits(index) == nil, id.utf8.contains(UInt8(ascii: ".")), let integer = LenientNumber.integer(id)
        else { return Identifier(id.storable) }
        return Identifier(String(integer))
    }

    func integer(_ field: AnswerField) -> Int64? { integer(at: field.slot) }

    func integer(at slot: Int) -> Int64? {
        guard let index = value(slot) else { return nil }
        return text.digits(index) ?? text.scalar(index).flatMap { LenientNumber.integer($0) }
    }

    /// Returns a boolean: true, 1, "1" and "true" in any case, and their opposites; nil if absent or another value.
    func flag(_ field: AnswerField) -> Bool? {
        guard let scalar = text(field) else { return nil }
        switch scalar {
        case "true", "1": return true
        case "false", "0": return false
        default: return ["true": true, "false": false][scalar.lowercased()]
        }
    }

    /// Returns whether the row contains an instant in any of its forms, readable or not.
    func mentions(_ date: AnswerDate) -> Bool {
        text(date, .plain) != nil || text(date, .milliseconds) != nil || text(date, .pacific) != nil
            || text(date, .formatted) != nil
    }

    /// Returns an instant. The member ending in `_ms` comes first. The text forms count only if it is missing or zero,
    /// which some sources write for no value. A plain field of digits is milliseconds too (legacy `expires_date`).
    /// Instants before 1970 or after 9999 count as absent.
    func instant(_ date: AnswerDate) -> Instant? {
        let milliseconds = integer(at: date.slot(.milliseconds)) ?? integer(at: date.slot(.plain))
        if let milliseconds, milliseconds != 0 {
            return LenientInstant.believable(milliseconds).map(Instant.init(milliseconds:))
        }
        let written =
            text(date, .plain).flatMap(LenientInstant.milliseconds)
            ?? text(date, .formatted).flatMap(LenientInstant.milliseconds)
        return (written ?? milliseconds).map(Instant.init(milliseconds:))
    }

    /// Returns which form `instant` reads for a date; nil if it can read none.
    func form(of date: AnswerDate) -> InstantForm? {
        guard let instant = instant(date) else { return nil }
        if integer(at: date.slot(.milliseconds)) == instant.milliseconds { return .milliseconds }
        if integer(at: date.slot(.plain)) == instant.milliseconds { return .plain }
        return text(date, .plain).flatMap(LenientInstant.milliseconds) != nil ? .text : .formatted
    }
}

extension String {
    /// The longest text from Apple that a column keeps, in Unicode scalars. A PostgreSQL index refuses more than 2,704
    /// bytes, and two such texts make one key. Apple's own texts are a fifth of that.
    private static let storableScalarsMax = 300

    /// The text in a form a column can store, without which every settlement of its answer would fail: U+FFFD replaces
    /// U+0000, and a text that is too long is cut. The observation keeps Apple's text.
    package var storable: String {
        let isShort = utf8.count <= Self.storableScalarsMax || unicodeScalars.count <= Self.storableScalarsMax
        if isShort, !utf8.contains(0) { return self }
        var text = UnicodeScalarView()
        for scalar in unicodeScalars.prefix(Self.storableScalarsMax) {
            text.append(scalar == "\u{0}" ? "\u{FFFD}" : scalar)
        }
        return String(text)
    }
}

/// Reads whole numbers as proxies and old answers write them.
enum LenientNumber {
    /// Accepts `"21002"`, `21002` and `21002.0`; nil for anything else, or if floating point would have lost digits.
    static func integer(_ text: String) -> Int64? {
        if let exact = Int64(text) { return exact }
        guard text.utf8.allSatisfy({ $0.isDigit || "-+.eE".utf8.contains($0) }),
            let number = Double(text), number.rounded() == number, number.magnitude < 9_007_199_254_740_992
        else { return nil }
        return Int64(number)
    }
}

/// Reads lists of rows that may be an array, a single object or nothing, and records the paths of unreadable rows.
struct RowReader {
    /// The most rows that one list may have. The longest lists seen have some hundreds.
    static let rowsMax = 100_000
    static let unreadableMax = 1000

    let text: JSONDocument
    private(set) var unreadable: [String] = []

    mutating func transactions(
        _ value: Int?, path: String, _ source: EvidenceSource
    ) throws(NotJSON) -> [TransactionRow] {
        try rows(value, path: path) { TransactionRow(reading: $0, path: $1, source) }
    }

    /// Returns the renewals at `value`; `rows` identify the subscription of a renewal that does not name one.
    mutating func renewals(
        _ value: Int?, path: String, among rows: [TransactionRow]
    ) throws(NotJSON) -> [RenewalRow] {
        var known = AnsweredSubscriptions(rows: rows)
        return try self.rows(value, path: path) { RenewalRow(reading: $0, path: $1, among: &known) }
    }

    /// Returns the single renewal of a legacy answer, whose fields are at its top level.
    mutating func legacyRenewal(_ top: LenientFields, among rows: [TransactionRow]) -> [RenewalRow] {
        guard let word = RenewalRow.firstWord(in: top) else { return [] }
        var known = AnsweredSubscriptions(rows: rows)
        if let renewal = RenewalRow(reading: top, path: "", among: &known) { return [renewal] }
        // The renewal's subscription is unknown; without any row the renewal is also of no use.
        if !rows.isEmpty { remember(word) }
        return []
    }

    private mutating func rows<Row>(
        _ value: Int?, path: String, read: (LenientFields, String) -> Row?
    ) throws(NotJSON) -> [Row] {
        guard let value, !text.isAbsent(value) else { return [] }
        guard text.nodes[value].isArray else {
            return [row(LenientFields(text, at: value), path, read)].compactMap(\.self)
        }
        let elements = text.elements(value)
        guard elements.count <= Self.rowsMax else {
            throw NotJSON("an answer of more than \(Self.rowsMax) rows in \(path)")
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
