import Foundation

/// One of Apple's answers as JSON, without the receipts in it.
struct AppleAnswer {
    /// The longest text that a page shows of it, in characters.
    static let charactersMax = 8_000

    private let members: [String: Any]

    /// Reads an answer; nil where it is not a JSON object.
    init?(body: [UInt8]) {
        guard let read = try? JSONSerialization.jsonObject(with: Data(body)), let object = read as? [String: Any] else {
            return nil
        }
        // A receipt is a secret of the customer, and too long for a page.
        members = object.filter { $0.key != "latest_receipt" }
    }

    /// Returns the row that holds a field, such as that of `latest_receipt_info[0].expires_date_ms`, for people. A path
    /// that leads nowhere gives the whole answer.
    func row(of path: String) -> String {
        let names = path.split(whereSeparator: { ".[]".contains($0) }).map(String.init)
        var value: Any = members
        for name in names.dropLast() {
            if let list = value as? [Any], let index = Int(name), list.indices.contains(index) {
                value = list[index]
            } else if let object = value as? [String: Any], let inner = object[name] {
                value = inner
            } else {
                return Self.text(of: members)
            }
        }
        return Self.text(of: value)
    }

    private static func text(of value: Any) -> String {
        guard JSONSerialization.isValidJSONObject(value),
            let data = try? JSONSerialization.data(
                withJSONObject: value, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        else { return "\(value)" }
        let text = String(decoding: data, as: UTF8.self)
        return text.count > charactersMax ? text.prefix(charactersMax) + "…" : text
    }
}
