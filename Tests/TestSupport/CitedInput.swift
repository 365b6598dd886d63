import Foundation

/// One input of an answer that an explanation cites, such as `latest_receipt_info[0].expires_date_ms`.
package struct CitedInput: Sendable, Hashable, CustomStringConvertible {
    /// The path as it is cited.
    package let path: String

    /// An input by its path.
    package init(_ path: String) { self.path = path }

    /// The path as it is cited.
    package var description: String { path }

    /// What is said there, in all its spellings: `expires_date_ms` repeats `expires_date`.
    private var fields: [String] {
        let field = path.split(separator: ".").last.map(String.init) ?? path
        let base = field.hasSuffix("_ms") ? String(field.dropLast(3)) : field
        // What does not say when it was bought is read by when it was bought first.
        let bases = base == "purchase_date" ? [base, "original_purchase_date"] : [base]
        return bases.flatMap { [$0, $0 + "_ms", $0 + "_pst", $0 + "_formatted"] }
    }

    /// The same answer without the input: without the field in its row, and in the rows that repeat this one.
    ///
    /// Nil when the path leads nowhere.
    package func removed(from body: [UInt8]) throws -> [UInt8]? {
        guard let names = try names(in: body) else { return nil }
        return try removed(from: body, where: names, alsoAtPath: true)
    }

    /// What tells the cited row from others: its transaction and its period, or the subscription whose renewal it is.
    ///
    /// Nil when the path leads nowhere.
    package func names(in body: [UInt8]) throws -> [String: String]? {
        guard let answer = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any],
            let row = Self.row(at: steps, in: answer), fields.contains(where: { row[$0] != nil })
        else { return nil }
        return Self.names(of: row)
    }

    /// Any answer without the input: without the field in every row that has one of the names, or at the top of an answer
    /// of iOS 6, which has no rows.
    package func removed(
        from body: [UInt8], where names: [String: String], alsoAtPath: Bool = false
    ) throws -> [UInt8] {
        guard let answer = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] else { return body }
        let changed = Self.rewritten(answer, alsoAtPath || steps.isEmpty ? steps : nil) { row, isCited in
            let repeats = Self.names(of: row).contains { names[$0.key] == $0.value }
            return isCited || repeats ? row.filter { !fields.contains($0.key) } : row
        }
        return [UInt8](try JSONSerialization.data(withJSONObject: changed, options: [.sortedKeys]))
    }

    private var steps: ArraySlice<String> { path.split(separator: ".").dropLast().map(String.init)[...] }

    private static func names(of row: [String: Any]) -> [String: String] {
        guard row["transaction_id"] != nil else { return texts(["original_transaction_id"], of: row) }
        var names = texts(["transaction_id", "web_order_line_item_id"], of: row)
        let period = texts(["original_transaction_id", "product_id", "purchase_date_ms"], of: row)
        if period.count == 3 { names["period"] = period.sorted { $0.key < $1.key }.map(\.value).joined(separator: "/") }
        return names
    }

    private static func texts(_ keys: [String], of row: [String: Any]) -> [String: String] {
        keys.reduce(into: [:]) { texts, key in texts[key] = row[key].map { "\($0)" } }
    }

    /// A step such as `in_app[3]`: its name, and its index where it has one.
    private static func parts(of step: String) -> (name: String, index: Int?) {
        let halves = step.split(separator: "[")
        guard halves.count == 2 else { return (step, nil) }
        return (String(halves[0]), Int(halves[1].dropLast()))
    }

    private static func row(at steps: ArraySlice<String>, in object: [String: Any]) -> [String: Any]? {
        guard let step = steps.first else { return object }
        let (name, index) = parts(of: step)
        guard let index else {
            return (object[name] as? [String: Any]).flatMap { row(at: steps.dropFirst(), in: $0) }
        }
        guard let rows = object[name] as? [[String: Any]], rows.indices.contains(index) else { return nil }
        return row(at: steps.dropFirst(), in: rows[index])
    }

    /// Every object below, changed; the one at the end of the path is the cited one.
    private static func rewritten(
        _ object: [String: Any], _ steps: ArraySlice<String>?, _ change: ([String: Any], Bool) -> [String: Any]
    ) -> [String: Any] {
        let inner = object.map { key, value -> (String, Any) in
            let next = steps?.first.map { parts(of: $0) }
            let rest = next?.name == key ? steps?.dropFirst() : nil
            if let below = value as? [String: Any] { return (key, rewritten(below, rest, change)) }
            if let rows = value as? [[String: Any]] {
                return (key, rows.enumerated().map { rewritten($1, next?.index == $0 ? rest : nil, change) })
            }
            return (key, value)
        }
        return change(Dictionary(uniqueKeysWithValues: inner), steps?.isEmpty ?? false)
    }
}
