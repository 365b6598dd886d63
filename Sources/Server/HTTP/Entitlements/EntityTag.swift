import Subscriptions

/// A weak entity tag (RFC 9110, section 8.8), equal for two answers of the same meaning.
///
/// Its fingerprint, FNV-1a with 64 bits, detects changes. It does not protect against forgery.
struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    private var fingerprint: UInt64 = 0xCBF2_9CE4_8422_2325

    /// Adds text; nil differs from every text.
    mutating func add(_ text: String?) {
        if let text { for byte in text.utf8 { add(byte) } } else { add(Self.absence) }
        add(Self.end)
    }

    /// Adds a truth value.
    mutating func add(_ flag: Bool) { add(flag ? UInt8(1) : 0) }

    /// Adds an instant.
    mutating func add(_ instant: Instant?) {
        guard let instant else { return add(Self.absence) }
        withUnsafeBytes(of: instant.milliseconds.littleEndian) { for byte in $0 { add(byte) } }
        add(Self.end)
    }

    /// Bytes that no UTF-8 has.
    private static let (absence, end) = (UInt8(0xFE), UInt8(0xFF))

    private mutating func add(_ byte: UInt8) { fingerprint = (fingerprint ^ UInt64(byte)) &* 0x100_0000_01B3 }

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
