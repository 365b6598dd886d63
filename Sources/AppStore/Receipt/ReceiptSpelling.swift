import Foundation
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

/// Standard Base64 as well-behaved clients write it. Everything else goes to `ReceiptSpelling` for a careful reading.
enum StandardBase64 {
    /// Returns the bytes that `text` encodes; nil unless it is whole groups of the standard alphabet, padded only at
    /// the end: Foundation takes some texts that go on behind their padding. Unused bits in the last group are dropped.
    static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        let padding = text.suffix(4).drop { $0 != UInt8(ascii: "=") }
        guard !text.isEmpty, text.count.isMultiple(of: 4), padding.count <= 2,
            padding.allSatisfy({ $0 == UInt8(ascii: "=") })
        else { return nil }
        return Data(base64Encoded: Data(text)).map { Array($0) }
    }

    static func isLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }
}
