import Foundation

/// A JSON object that somebody sent, read field by field; what has another type than asked for is not there.
struct JSONFields {
    private let values: [String: Any]

    private init?(_ value: Any?) {
        guard let values = value as? [String: Any] else { return nil }
        self.values = values
    }

    /// The object a text is; nil when it is no JSON object. Foundation bounds the depth.
    init?(_ data: Data) {
        // Why it is not JSON does not matter to the sender, who is a machine.
        self.init(try? JSONSerialization.jsonObject(with: data))
    }

    /// The payload of a JSON Web Signature in compact form, unverified; nil for anything else.
    ///
    /// https://www.rfc-editor.org/rfc/rfc7515#section-3.1
    init?(payloadOf signed: String) {
        let parts = signed.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts.allSatisfy({ !$0.isEmpty }) else { return nil }
        var base64 = String(parts[1]).replacing("-", with: "+").replacing("_", with: "/")
        base64 += String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: base64) else { return nil }
        self.init(data)
    }

    /// Text, or a whole number as text; nil when it is empty, too long, or has a NUL, where PostgreSQL's text would end.
    func text(_ name: String, bytesMax: Int) -> String? {
        let text = values[name] as? String ?? whole(name).map { String($0) }
        guard let text, !text.isEmpty, text.utf8.count <= bytesMax, !text.utf8.contains(0) else { return nil }
        return text
    }

    /// A whole number, or text that is one.
    func whole(_ name: String) -> Int64? {
        if let text = values[name] as? String { return Int64(text) }
        return values[name] as? Int64
    }

    /// An object in a field.
    func fields(_ name: String) -> JSONFields? { JSONFields(values[name]) }

    /// The objects of a list in a field.
    func rows(_ name: String) -> [JSONFields] {
        (values[name] as? [Any] ?? []).compactMap { JSONFields($0) }
    }

    /// The same as JSON text with every `password` blackened, at whatever depth; nil when there is none.
    var withoutPasswords: String? {
        var found = false
        let redacted = Self.redacted(values, &found)
        guard found, let data = try? JSONSerialization.data(withJSONObject: redacted, options: [.sortedKeys]) else {
            return nil
        }
        return String(decoding: data, as: UTF8.self)
    }

    private static func redacted(_ value: Any, _ found: inout Bool) -> Any {
        if let list = value as? [Any] { return list.map { redacted($0, &found) } }
        guard let object = value as? [String: Any] else { return value }
        var copy: [String: Any] = [:]
        for (name, inner) in object {
            let isSecret = name.lowercased() == "password"
            found = found || isSecret
            copy[name] = isSecret ? "redacted" : redacted(inner, &found)
        }
        return copy
    }
}
