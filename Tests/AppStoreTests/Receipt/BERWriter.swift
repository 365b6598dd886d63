/// Writes receipts as Apple, Xcode and less careful programs write them.
enum BERWriter {
    /// An element with its length in the shortest form.
    static func element(_ tag: UInt8, _ parts: [UInt8]...) -> [UInt8] { element(tag, parts) }

    static func element(_ tag: UInt8, _ parts: [[UInt8]]) -> [UInt8] {
        let content = join(parts)
        guard content.count >= 0x80 else { return [tag, UInt8(content.count)] + content }
        var length: [UInt8] = []
        var rest = content.count
        while rest > 0 {
            length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [tag, 0x80 | UInt8(length.count)] + length + content
    }

    /// An element of indefinite length.
    static func endless(_ tag: UInt8, _ parts: [UInt8]...) -> [UInt8] {
        [tag, 0x80] + join(parts) + [0, 0]
    }

    /// Appends whole parts: without the optimiser a joined sequence takes seconds for a million bytes.
    private static func join(_ parts: [[UInt8]]) -> [UInt8] { parts.reduce(into: []) { $0 += $1 } }

    static func integer(_ value: Int) -> [UInt8] {
        var bytes = [UInt8(truncatingIfNeeded: value)]
        var rest = value >> 8
        while rest > 0 {
            bytes.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return element(0x02, bytes.first.map { $0 >= 0x80 } == true ? [0] + bytes : bytes)
    }

    static func octets(_ content: [UInt8]) -> [UInt8] { element(0x04, content) }
    static func text(_ text: String) -> [UInt8] { element(0x0C, Array(text.utf8)) }
    static func date(_ text: String) -> [UInt8] { element(0x16, Array(text.utf8)) }

    static func attribute(_ type: Int, _ value: [UInt8]) -> [UInt8] {
        element(0x30, integer(type), integer(1), octets(value))
    }

    static func purchase(_ attributes: [UInt8]...) -> [UInt8] { attribute(17, element(0x31, attributes)) }

    /// An ordinary purchase of a subscription's period.
    static func purchase(_ id: String, original: String) -> [UInt8] {
        purchase(
            attribute(1701, integer(1)), attribute(1702, text("monthly")), attribute(1703, text(id)),
            attribute(1705, text(original)), attribute(1704, date("2026-01-01T00:00:00Z")),
            attribute(1708, date("2026-02-01T00:00:00Z")), attribute(1711, integer(503_000_000_000_009)),
            attribute(1712, date("")), attribute(1719, integer(0)))
    }

    /// Signed data around `content`, which is the tagged octet string; the certificates are none.
    static func signedData(_ content: [UInt8]) -> [UInt8] {
        let signedData = element(
            0x30, integer(1), element(0x31, element(0x30, element(0x06, sha256))),
            element(0x30, element(0x06, data), element(0xA0, content)), element(0xA0, integer(7)), element(0x31))
        return element(0x30, element(0x06, signed), element(0xA0, signedData))
    }

    /// A whole receipt with these attributes.
    static func receipt(_ attributes: [UInt8]...) -> [UInt8] { signedData(octets(element(0x31, attributes))) }

    /// An app-level attribute each, and two purchases of one subscription.
    static let ordinary = receipt(
        attribute(0, text("ProductionSandbox")), attribute(2, text("com.example.app")), attribute(3, text("7")),
        attribute(4, [1, 2, 3]), attribute(12, date("2026-01-02T03:04:05Z")),
        purchase("11", original: "10"), purchase("10", original: "10"), attribute(19, text("1.0")))

    static let signed: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]
    static let data: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01]
    static let sha256: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]
}
