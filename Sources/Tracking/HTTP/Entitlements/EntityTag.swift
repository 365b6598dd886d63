/// A weak entity tag (RFC 9110, section 8.8): equal when two answers mean the same.
///
/// It is a fingerprint against change, not against forgery: FNV-1a with 64 bits.
struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    private let fingerprint: UInt64

    /// The tag of some values.
    init(_ values: [JSONValue]) {
        self.init(values, behind: 0xCBF2_9CE4_8422_2325)
    }

    private init(_ values: [JSONValue], behind start: UInt64) {
        fingerprint = JSONText(.array(values)).bytes.reduce(start) { hash, byte in
            (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
    }

    /// The tag of these values and some more.
    func joined(with values: [JSONValue]) -> EntityTag { EntityTag(values, behind: fingerprint) }

    /// The tag as the header has it.
    var description: String {
        let digits = String(fingerprint, radix: 16)
        return "W/\"\(String(repeating: "0", count: 16 - digits.count))\(digits)\""
    }

    /// Whether an `If-None-Match` names it; the comparison is weak, as RFC 9110, section 13.1.2 has it.
    func isNamed(in fields: [String]) -> Bool {
        guard !fields.isEmpty else { return false }
        let opaque = description.dropFirst(2)
        return fields.flatMap { $0.split(separator: ",") }.contains { candidate in
            let text = candidate.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
            return text == "*" || (text.hasPrefix("W/") ? text.dropFirst(2) : text) == opaque
        }
    }
}
