/// A receipt text with the usual damage repaired: one or two readings of Base64 remain, to be decoded strictly.
struct ReceiptSpelling {
    /// Readings in the standard alphabet without white space, the likelier first. Two only if spaces are ambiguous.
    private let readings: [[UInt8]]

    /// Removes quoting, escaping, armour and other alphabets; rejects text that is something else altogether.
    init(repairing text: String) throws(ReceiptDataError) {
        var bytes = Self.visible(text)
        // Wrappings come in layers (quotes inside percent encoding, escapes inside quotes): a few rounds remove them
        // all.
        for _ in 0..<4 {
            let before = bytes
            bytes = Self.trimmed(bytes)
            try OtherThanReceipt.refuse(bytes)
            bytes = ReceiptWrapping.removed(from: bytes)
            if bytes == before { break }
        }
        readings = Self.readings(of: bytes)
    }

    /// Decodes the most plausible reading. If none can be decoded, throws the fault of the likelier reading.
    func decoded() throws(ReceiptDataError) -> DecodedReceipt {
        guard let first = readings.first else { throw .empty }
        guard readings.count > 1 else { return try DecodedReceipt(base64: first) }
        var best: DecodedReceipt?
        for reading in readings {
            guard let candidate = Self.decodedOrNothing(reading) else { continue }
            if let known = best, known.plausibility >= candidate.plausibility { continue }
            best = candidate
        }
        if let best { return best }
        return try DecodedReceipt(base64: first)
    }

    private static func decodedOrNothing(_ reading: [UInt8]) -> DecodedReceipt? {
        do { return try DecodedReceipt(base64: reading) } catch { return nil }
    }

    /// Returns two readings if spaces are ambiguous: form decoding turns `+` into a space, and editors add spaces.
    private static func readings(of bytes: [UInt8]) -> [[UInt8]] {
        let standard = bytes.map { byte -> UInt8 in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        let without = standard.filter { !$0.isWhiteSpace }
        guard standard.contains(UInt8(ascii: " ")) else { return [without] }
        let pluses = standard.map { $0 == UInt8(ascii: " ") ? UInt8(ascii: "+") : $0 }.filter { !$0.isWhiteSpace }
        let hasNewline = standard.contains { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        let hasPlus = standard.contains(UInt8(ascii: "+"))
        if hasNewline || hasPlus || isWrapped(standard) { return [without, pluses] }
        return [pluses, without]
    }

    /// Returns whether spaces replace MIME or PEM line breaks: every 76 or 64 characters.
    private static func isWrapped(_ bytes: [UInt8]) -> Bool {
        let lines = bytes.split(separator: UInt8(ascii: " "))
        guard let width = lines.first?.count, width == 76 || width == 64 else { return false }
        return lines.dropLast().allSatisfy { $0.count == width }
    }

    /// Returns the text as bytes, without invisible characters.
    private static func visible(_ text: String) -> [UInt8] {
        guard text.utf8.contains(where: { $0 >= 0x80 }) else { return Array(text.utf8) }
        var visible = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0xFEFF, 0x200B...0x200F, 0x2060, 0x00AD: continue
            case 0x00A0, 0x2028, 0x2029: visible.append("\n")
            default: visible.append(scalar)
            }
        }
        return Array(String(visible).utf8)
    }

    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        let start = bytes.drop { $0.isWhiteSpace || $0 == 0 }
        guard let end = start.lastIndex(where: { !$0.isWhiteSpace && $0 != 0 }) else { return [] }
        return Array(start[...end])
    }
}

extension UInt8 {
    /// Whether this is a space, tab, line feed, vertical tab, form feed or carriage return.
    var isWhiteSpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
