import Foundation

/// A JSON object from a caller, read field by field. A field of another type than requested counts as absent.
struct JSONFields {
    private let values: [String: Any]

    private init?(_ value: Any?) {
        guard let values = value as? [String: Any] else { return nil }
        self.values = values
    }

    /// Parses a JSON object, or returns nil when the text is not one. Foundation bounds the depth.
    init?(_ data: Data) {
        // The sender is a machine, so the reason why the text is not JSON does not matter.
        self.init(try? JSONSerialization.jsonObject(with: data))
    }

    /// Parses the payload of a JSON Web Signature in compact form without verification. Returns nil for anything else.
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

    /// Returns text, or a whole number as text. Returns nil when it is empty, too long, or contains NUL, where
    /// PostgreSQL's text would end.
    func text(_ name: String, bytesMax: Int) -> String? {
        let text = values[name] as? String ?? integer(name).map { String($0) }
        guard let text, !text.isEmpty, text.utf8.count <= bytesMax, !text.utf8.contains(0) else { return nil }
        return text
    }

    /// Returns a whole number, also from text.
    func integer(_ name: String) -> Int64? {
        if let text = values[name] as? String { return Int64(text) }
        return values[name] as? Int64
    }

    /// Returns the object in a field.
    func fields(_ name: String) -> JSONFields? { JSONFields(values[name]) }

    /// Returns the objects of a list in a field.
    func rows(_ name: String) -> [JSONFields] {
        (values[name] as? [Any] ?? []).compactMap { JSONFields($0) }
    }

    /// The object as JSON text with every `password` redacted, at any depth; nil when there is none.
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
