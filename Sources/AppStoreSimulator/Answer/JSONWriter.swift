/// Writes JSON in a fixed key order, straight to bytes.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    private var needsComma = false

    init(reserving count: Int = 1024) {
        bytes.reserveCapacity(count)
    }

    mutating func object(_ body: (inout JSONWriter) -> Void) { enclosed("{", "}", body) }

    mutating func object(_ key: String, _ body: (inout JSONWriter) -> Void) {
        name(key)
        enclosed("{", "}", body)
    }

    mutating func array(_ key: String, _ body: (inout JSONWriter) -> Void) {
        name(key)
        enclosed("[", "]", body)
    }

    mutating func text(_ key: String, _ value: String) {
        name(key)
        quoted(value)
        needsComma = true
    }

    mutating func number(_ key: String, _ value: Int64) {
        name(key)
        bytes.append(contentsOf: String(value).utf8)
        needsComma = true
    }

    mutating func boolean(_ key: String, _ value: Bool) {
        name(key)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
        needsComma = true
    }

    /// Apple's triple: Greenwich text, milliseconds as a string, Pacific text.
    mutating func date(_ key: StaticString, _ moment: Moment) {
        dated(key, "") { AppleDates.appendGreenwich(moment, to: &$0) }
        dated(key, "_ms") { $0.append(contentsOf: String(moment.milliseconds).utf8) }
        dated(key, "_pst") { AppleDates.appendPacific(moment, to: &$0) }
    }

    /// The parts of a date need no escapes, so they go straight to the bytes.
    private mutating func dated(_ key: StaticString, _ suffix: StaticString, _ value: (inout [UInt8]) -> Void) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        key.withUTF8Buffer { bytes.append(contentsOf: $0) }
        suffix.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: [UInt8(ascii: "\""), UInt8(ascii: ":"), UInt8(ascii: "\"")])
        value(&bytes)
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    private mutating func enclosed(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONWriter) -> Void)
    {
        separate()
        bytes.append(UInt8(ascii: open))
        needsComma = false
        body(&self)
        bytes.append(UInt8(ascii: close))
        needsComma = true
    }

    private mutating func name(_ key: String) {
        separate()
        quoted(key)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = false
    }

    private mutating func quoted(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20: bytes.append(UInt8(ascii: " "))
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
