/// Receipt bytes and their apparent form.
struct DecodedReceipt {
    let bytes: [UInt8]
    let form: ReceiptForm

    init(bytes: [UInt8]) {
        self.bytes = bytes
        form = ReceiptForm(sniffing: bytes)
    }

    /// Decodes the standard alphabet strictly; padding may be missing, unused bits are dropped.
    init(base64 text: [UInt8]) throws(ReceiptDataError) {
        if let bytes = text.withUnsafeBufferPointer(StandardBase64.decoded) {
            self.init(bytes: bytes)
        } else {
            try self.init(oddBase64: text)
        }
    }

    /// Decodes one character at a time, to report the exact fault and its position.
    init(oddBase64 text: [UInt8]) throws(ReceiptDataError) {
        let unpadded = text.prefix { $0 != UInt8(ascii: "=") }
        if let odd = text[unpadded.endIndex...].firstIndex(where: { $0 != UInt8(ascii: "=") }) {
            throw Self.foreign(UInt8(ascii: "="), in: text, at: odd - 1)
        }
        guard !unpadded.isEmpty else { throw .empty }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(unpadded.count * 3 / 4)
        var bits: UInt32 = 0
        var bitCount = 0
        for (position, character) in unpadded.enumerated() {
            guard let six = Self.sixBits(character) else { throw Self.foreign(character, in: text, at: position) }
            bits = bits << 6 | UInt32(six)
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                decoded.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
            }
        }
        guard unpadded.count % 4 != 1 else { throw .cutShort(characters: unpadded.count) }
        self.init(bytes: decoded)
    }

    /// The confidence that this is a complete receipt: 2 if the outer DER length agrees, 1 if only the form is known, 0
    /// if the form is unknown.
    var plausibility: Int {
        guard form != .unknown else { return 0 }
        return derLengthAgrees ? 2 : 1
    }

    private var derLengthAgrees: Bool {
        guard form == .unified, bytes.count > 6, bytes[1] > 0x80, bytes[1] <= 0x84 else { return false }
        let lengthBytes = Int(bytes[1] - 0x80)
        let length = bytes[2..<(2 + lengthBytes)].reduce(0) { $0 << 8 | Int($1) }
        return length + 2 + lengthBytes == bytes.count
    }

    private static func sixBits(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }

    /// Names the character for a person, whole even if it takes several bytes.
    private static func foreign(_ byte: UInt8, in text: [UInt8], at index: Int) -> ReceiptDataError {
        let shown: String
        if byte < 0x80 {
            shown = byte > 0x20 && byte < 0x7F ? "'\(Character(UnicodeScalar(byte)))'" : "control character \(byte)"
        } else {
            let character = String(decoding: text[index...].prefix(4), as: UTF8.self).first
            shown = character.map { "'\($0)'" } ?? "byte \(byte)"
        }
        return .foreignCharacter(shown, position: index + 1)
    }
}
