/// Random numbers as lower-case hexadecimal digits.
enum HexDigits {
    /// Returns the form of a UUID: 8, 4, 4, 4 and 12 digits.
    static func uuid(_ high: UInt64, _ low: UInt64) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(36)
        for place in 0..<32 {
            if place == 8 || place == 12 || place == 16 || place == 20 { text.append(UInt8(ascii: "-")) }
            text.append(digit(place < 16 ? high >> UInt64(60 - 4 * place) : low >> UInt64(124 - 4 * place)))
        }
        return text
    }

    /// Returns the digit of the lowest four bits.
    private static func digit(_ number: UInt64) -> UInt8 {
        let value = UInt8(truncatingIfNeeded: number & 0xF)
        return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
