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

    /// Replaces escapes: `\/` is a slash, `\n`, `\r` and `\t` are white space, `\u002b` is a plus, `\"` is an outer
    /// quote.
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
