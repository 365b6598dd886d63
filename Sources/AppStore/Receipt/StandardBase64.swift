/// Decodes standard Base64 as well-behaved clients write it, four characters at a time.
///
/// It handles only this ordinary case. Everything else yields nil and goes to `ReceiptSpelling` for a careful reading.
/// An import of millions of receipts spends its time here.
enum StandardBase64 {
    /// Returns the bytes that `text` encodes; nil unless it is whole groups of the standard alphabet, padded only at
    /// the end. Unused bits in the last group are dropped.
    static func decoded(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard let last = text.last, text.count.isMultiple(of: 4) else { return nil }
        let pad = UInt8(ascii: "=")
        let padding = last == pad ? (text[text.count - 2] == pad ? 2 : 1) : 0
        let wholeGroups = text.count / 4 - (padding == 0 ? 0 : 1)
        var isForeign = false
        // A group is stored as four bytes, and the next group overwrites the last one: hence one extra byte of
        // capacity.
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

    /// The six bits of every character of the alphabet; `foreign` for any other byte.
    private static let sextets: [UInt32] = {
        var sextets = [UInt32](repeating: foreign, count: 256)
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        for (value, character) in alphabet.utf8.enumerated() { sextets[Int(character)] = UInt32(value) }
        return sextets
    }()

    /// A bit that no six-bit value has, even when shifted to the front of its group.
    private static let foreign: UInt32 = 1 << 31

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
