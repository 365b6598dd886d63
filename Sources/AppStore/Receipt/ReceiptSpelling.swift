import JSON

/// A receipt text with the usual damage repaired: one or two readings of Base64 remain, to be decoded strictly.
struct ReceiptSpelling {
    /// Readings in the standard alphabet without white space, the likelier first. Two only if spaces are ambiguous.
    private let readings: [[UInt8]]

    /// Removes quoting, escaping, armour and other alphabets; rejects text that is something else altogether.
    init(repairing text: String) throws(ReceiptDataError) {
        var bytes = Self.visible(text)
        // Wrappings come in layers (quotes inside percent encoding, escapes inside quotes): a few rounds remove all.
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
    func decoded() throws(ReceiptDataError) -> ReceiptData {
        guard let first = readings.first else { throw .empty }
        guard readings.count > 1 else { return try ReceiptData(base64: first) }
        let candidates = readings.compactMap { try? ReceiptData(base64: $0) }
        if let best = candidates.max(by: { $0.plausibility < $1.plausibility }) { return best }
        return try ReceiptData(base64: first)
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

/// Removes wrappings that other programs put around the Base64 of a receipt.
enum ReceiptWrapping {
    /// Removes one layer of quotes, `data:` prefix, PEM armour, backslash escapes and percent encoding.
    static func removed(from bytes: [UInt8]) -> [UInt8] {
        var bytes = unquoted(bytes)
        let isDataURL = bytes.prefix(5).map { $0 | 0x20 } == Array("data:".utf8)
        if isDataURL, let comma = bytes.firstIndex(of: UInt8(ascii: ",")) {
            bytes = Array(bytes[(comma + 1)...])
        }
        if bytes.starts(with: Array("-----BEGIN".utf8)) { bytes = unarmoured(bytes) }
        if bytes.contains(UInt8(ascii: "\\")) { bytes = unescaped(bytes) }
        if bytes.contains(UInt8(ascii: "%")) { bytes = percentDecoded(bytes) }
        return bytes
    }

    private static func unquoted(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.count >= 2, let first = bytes.first, first == bytes.last,
            first == UInt8(ascii: "\"") || first == UInt8(ascii: "'") || first == UInt8(ascii: "`")
        else { return bytes }
        return Array(bytes.dropFirst().dropLast())
    }

    /// Drops the dashed lines. Their dashes would otherwise be read as the URL-safe alphabet.
    private static func unarmoured(_ bytes: [UInt8]) -> [UInt8] {
        let lines = bytes.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        let inner = lines.filter { !$0.starts(with: Array("-----".utf8)) }
        return Array(inner.joined(separator: [UInt8(ascii: "\n")]))
    }

    /// Replaces escapes: `\/` is a slash, `\n`, `\r` and `\t` are white space, `\u002b` is a plus, `\"` an outer quote.
    private static func unescaped(_ bytes: [UInt8]) -> [UInt8] {
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var at = 0
        while at < bytes.count {
            guard bytes[at] == UInt8(ascii: "\\") else {
                plain.append(bytes[at])
                at += 1
                continue
            }
            // A run of backslashes is one escape that was escaped again; Base64 has no backslash of its own.
            while at < bytes.count, bytes[at] == UInt8(ascii: "\\") { at += 1 }
            guard at < bytes.count else { break }
            switch bytes[at] {
            case UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"): plain.append(UInt8(ascii: "\n"))
            case UInt8(ascii: "u"):
                guard let code = hexadecimal(bytes[(at + 1)...].prefix(4), digits: 4), code < 0x80 else {
                    plain.append(UInt8(ascii: "\\"))
                    continue
                }
                plain.append(UInt8(code))
                at += 4
            default: plain.append(bytes[at])
            }
            at += 1
        }
        return plain
    }

    /// Decodes `%2B` and the like; a percent sign without two digits stays, and a later step rejects it by name.
    private static func percentDecoded(_ bytes: [UInt8]) -> [UInt8] {
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var at = 0
        while at < bytes.count {
            if bytes[at] == UInt8(ascii: "%"), let code = hexadecimal(bytes[(at + 1)...].prefix(2), digits: 2) {
                plain.append(UInt8(code))
                at += 3
            } else {
                plain.append(bytes[at])
                at += 1
            }
        }
        return plain
    }

    private static func hexadecimal(_ digits: ArraySlice<UInt8>, digits count: Int) -> Int? {
        guard digits.count == count, !digits.contains(UInt8(ascii: "+")), !digits.contains(UInt8(ascii: "-")) else {
            return nil
        }
        return Int(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}

/// Decodes standard Base64 as well-behaved clients write it, four characters at a time: an import of millions of
/// receipts spends its time here. Everything else yields nil and goes to `ReceiptSpelling` for a careful reading.
enum StandardBase64 {
    /// Returns the bytes that `text` encodes; nil unless it is whole groups of the standard alphabet, padded only at
    /// the end. Unused bits in the last group are dropped.
    static func decoded(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard let last = text.last, text.count.isMultiple(of: 4) else { return nil }
        let pad = UInt8(ascii: "=")
        let padding = last == pad ? (text[text.count - 2] == pad ? 2 : 1) : 0
        let wholeGroups = text.count / 4 - (padding == 0 ? 0 : 1)
        var isForeign = false
        // A group is stored as four bytes, of which the next group overwrites the last: hence one byte more.
        var bytes = [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3 + 1) { room, count in
            sextets.withUnsafeBufferPointer { sextets in
                let raw = UnsafeMutableRawBufferPointer(room)
                var seen: UInt32 = 0
                for group in 0..<wholeGroups {
                    let bits = twentyFourBits(of: text, at: group * 4, sextets, &seen)
                    raw.storeBytes(of: (bits << 8).bigEndian, toByteOffset: group * 3, as: UInt32.self)
                }
                isForeign = seen & foreign != 0
                count = isForeign ? 0 : wholeGroups * 3
            }
        }
        guard !isForeign else { return nil }
        guard padding > 0 else { return bytes }
        guard let tail = paddedGroup(text.suffix(4).dropLast(padding)) else { return nil }
        bytes.append(contentsOf: tail)
        return bytes
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The six bits of every character of the alphabet; `foreign` for any other byte.
    private static let sextets = (0...UInt8.max).map { alphabet.firstIndex(of: $0).map { UInt32($0) } ?? foreign }

    /// A bit that no six-bit value has, even when shifted to the front of its group.
    private static let foreign: UInt32 = 1 << 31

    static func sixBits(_ character: UInt8) -> UInt32? {
        let bits = sextets[Int(character)]
        return bits == foreign ? nil : bits
    }

    private static func twentyFourBits(
        of text: UnsafeBufferPointer<UInt8>, at start: Int, _ sextets: UnsafeBufferPointer<UInt32>, _ seen: inout UInt32
    ) -> UInt32 {
        let first = sextets[Int(text[start])]
        let second = sextets[Int(text[start + 1])]
        let third = sextets[Int(text[start + 2])]
        let fourth = sextets[Int(text[start + 3])]
        seen |= first | second | third | fourth
        return first << 18 | second << 12 | third << 6 | fourth
    }

    /// Decodes one or two bytes from the two or three characters of a padded group.
    private static func paddedGroup(_ characters: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8]? {
        let values = characters.map { sextets[Int($0)] }
        guard !values.contains(foreign) else { return nil }
        let bits = values.reduce(0) { $0 << 6 | $1 } << UInt32(6 * (4 - values.count))
        return (1..<values.count).map { UInt8(truncatingIfNeeded: bits >> UInt32(24 - 8 * $0)) }
    }
}
