/// A receipt text whose usual damage is undone; what remains is one or two readings of Base64 to decode strictly.
struct ReceiptSpelling {
    /// Readings in standard alphabet without white space, the likelier first. Two only when spaces are ambiguous.
    private let readings: [[UInt8]]

    /// Undoes quoting, escaping, armour and alphabets; refuses what is something else altogether.
    init(repairing text: String) throws(ReceiptDataError) {
        var bytes = Self.visible(text)
        // Wrappings come in layers (quotes inside percent encoding, escapes inside quotes): a few rounds take all off.
        for _ in 0..<4 {
            let before = bytes
            bytes = Self.trimmed(bytes)
            try OtherThanReceipt.refuse(bytes)
            bytes = ReceiptWrapping.removed(from: bytes)
            if bytes == before { break }
        }
        readings = Self.readings(of: bytes)
    }

    /// The most plausible reading, decoded. Throws what is wrong with the likelier reading when none can be decoded.
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

    /// Form decoding turns `+` into a space, editors add spaces: both happen, so ambiguous spaces give two readings.
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

    /// Whether spaces stand where MIME or PEM line breaks would: every 76 or 64 characters.
    private static func isWrapped(_ bytes: [UInt8]) -> Bool {
        let lines = bytes.split(separator: UInt8(ascii: " "))
        guard let width = lines.first?.count, width == 76 || width == 64 else { return false }
        return lines.dropLast().allSatisfy { $0.count == width }
    }

    /// The text as bytes, without characters nobody can see.
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
    /// Space, tab, line feed, vertical tab, form feed or carriage return.
    var isWhiteSpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
