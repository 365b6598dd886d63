/// A weak entity tag (RFC 9110, section 8.8), equal for two answers of the same meaning.
///
/// Its fingerprint, FNV-1a with 64 bits, detects changes. It does not protect against forgery.
struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    private let fingerprint: UInt64

    /// Creates the tag of some values.
    init(_ values: [JSONValue]) {
        self.init(values, behind: 0xCBF2_9CE4_8422_2325)
    }

    private init(_ values: [JSONValue], behind start: UInt64) {
        fingerprint = JSONText(.array(values)).bytes.reduce(start) { hash, byte in
            (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
    }

    /// Returns the tag of these values and some more.
    func joined(with values: [JSONValue]) -> EntityTag { EntityTag(values, behind: fingerprint) }

    /// The tag in the syntax of the header.
    var description: String {
        let digits = String(fingerprint, radix: 16)
        return "W/\"\(String(repeating: "0", count: 16 - digits.count))\(digits)\""
    }

    /// Returns whether an `If-None-Match` names it, by the weak comparison of RFC 9110, section 13.1.2.
    func isNamed(in fields: [String]) -> Bool {
        guard !fields.isEmpty else { return false }
        let opaque = description.dropFirst(2)
        return fields.flatMap { $0.split(separator: ",") }.contains { candidate in
            let text = candidate.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
            return text == "*" || (text.hasPrefix("W/") ? text.dropFirst(2) : text) == opaque
        }
    }
}
