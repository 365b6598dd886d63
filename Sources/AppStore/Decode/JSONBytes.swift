extension UInt8 {
    /// Whether this is white space between JSON values: space, tab, line feed, carriage return.
    var isJSONSpace: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }

    /// Whether this is `0` to `9`.
    var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }

    /// Whether this is a hexadecimal digit in either case.
    var isHexadecimal: Bool { isDigit || (self | 0x20) &- UInt8(ascii: "a") < 6 }
}

extension UnsafeBufferPointer<UInt8> {
    /// Returns the position of the next quote or backslash from `start` on; the end if there is none. It examines eight
    /// bytes at once, because most of an answer is strings.
    func endOfPlainText(from start: Int) -> Int {
        var at = start
        let raw = UnsafeRawBufferPointer(self)
        while count - at >= 8 {
            let eight = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            let marks = (eight ^ Self.quotes).zeroBytes | (eight ^ Self.backslashes).zeroBytes
            if marks != 0 { return at + marks.trailingZeroBitCount / 8 }
            at += 8
        }
        while at < count, self[at] != UInt8(ascii: "\""), self[at] != UInt8(ascii: "\\") { at += 1 }
        return Swift.min(at, count)
    }

    private static var quotes: UInt64 { 0x2222_2222_2222_2222 }
    private static var backslashes: UInt64 { 0x5C5C_5C5C_5C5C_5C5C }
}

extension UInt64 {
    /// The top bit of every byte that is zero. Bytes above the lowest such byte may be marked wrongly.
    fileprivate var zeroBytes: UInt64 { (self &- 0x0101_0101_0101_0101) & ~self & 0x8080_8080_8080_8080 }
}
