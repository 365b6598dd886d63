/// Reads lists of rows that may be an array, a single object or nothing. An odd row is remembered by its path and never
/// loses the others.
struct RowReader {
    /// How many unreadable rows are remembered.
    static let unreadableMax = 1000

    private(set) var unreadable: [String] = []

    /// The transactions at `value`.
    mutating func transactions(_ value: JSONValue?, path: String) -> [TransactionFields] {
        located(value, path: path).compactMap { row, path in
            let fields = TransactionFields(reading: row, path: path)
            if fields == nil { remember(path) }
            return fields
        }
    }

    /// The renewals at `value`; `rows` tell which subscription an unnamed one speaks of.
    mutating func renewals(
        _ value: JSONValue?, path: String, among rows: [TransactionFields]
    ) -> [RenewalFields] {
        located(value, path: path).compactMap { row, path in
            let fields = RenewalFields(reading: row, path: path, among: rows)
            if fields == nil { remember(path) }
            return fields
        }
    }

    /// The single renewal of a legacy answer, whose fields stand at the top of it.
    mutating func legacyRenewal(_ top: JSONValue, among rows: [TransactionFields]) -> [RenewalFields] {
        guard let present = RenewalFields.speakingFields.first(where: { top.member($0)?.scalar != nil }) else {
            return []
        }
        if let renewal = RenewalFields(reading: top, path: "", among: rows) { return [renewal] }
        // Nothing says whose renewal this is; without any row it is also of no use to anybody.
        if !rows.isEmpty { remember(present) }
        return []
    }

    private mutating func located(_ value: JSONValue?, path: String) -> [(JSONValue, String)] {
        guard let value, !value.isAbsent else { return [] }
        if value.isArray { return value.elements.enumerated().map { ($1, "\(path)[\($0)]") } }
        if value.isObject { return [(value, path)] }
        remember(path)
        return []
    }

    private mutating func remember(_ path: String) {
        if unreadable.count < Self.unreadableMax { unreadable.append(path) }
    }
}
