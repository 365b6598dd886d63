/// The escapes of JSON strings, in both directions.
enum JSONEscapes {
    /// Returns the text of a string whose escapes the reader has checked. Half a surrogate pair becomes U+FFFD.
    static func removed(from content: ArraySlice<UInt8>) -> String {
        var plain: [UInt8] = []
        plain.reserveCapacity(content.count)
        var rest = content
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
                plain.append(byte)
                continue
            }
            switch escape {
            case UInt8(ascii: "n"): plain.append(0x0A)
            case UInt8(ascii: "r"): plain.append(0x0D)
            case UInt8(ascii: "t"): plain.append(0x09)
            case UInt8(ascii: "b"): plain.append(0x08)
            case UInt8(ascii: "f"): plain.append(0x0C)
            case UInt8(ascii: "u"): plain.append(contentsOf: String(Character(takeScalar(&rest))).utf8)
            default: plain.append(escape)
            }
        }
        return String(decoding: plain, as: UTF8.self)
    }

    /// Returns a JSON string with its quotes.
    static func quoted(_ text: String) -> String {
        // A receipt is a long text with nothing to escape.
        var text = text
        guard text.withUTF8({ $0.contains(where: needsEscape) }) else { return "\"\(text)\"" }
        var quoted = "\""
        quoted.reserveCapacity(text.utf8.count + 2)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\u{0}"..<" ": quoted += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < UInt8(ascii: " ") || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private static func takeScalar(_ rest: inout ArraySlice<UInt8>) -> Unicode.Scalar {
        guard let unit = takeUnit(&rest) else { return "\u{FFFD}" }
        guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) ?? "\u{FFFD}" }
        let afterHigh = rest
        guard rest.popFirst() == UInt8(ascii: "\\"), rest.popFirst() == UInt8(ascii: "u"),
            let low = takeUnit(&rest), (0xDC00..<0xE000).contains(low)
        else {
            rest = afterHigh
            return "\u{FFFD}"
        }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)) ?? "\u{FFFD}"
    }

    private static func takeUnit(_ rest: inout ArraySlice<UInt8>) -> UInt32? {
        let digits = rest.prefix(4)
        guard digits.count == 4, let unit = UInt32(String(decoding: digits, as: UTF8.self), radix: 16) else {
            return nil
        }
        rest = rest.dropFirst(4)
        return unit
    }
}
