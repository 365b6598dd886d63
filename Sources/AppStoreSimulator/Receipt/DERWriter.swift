/// The few parts of DER a receipt is made of.
enum DERWriter {
    static let sequenceTag: UInt8 = 0x30
    static let setTag: UInt8 = 0x31
    static let explicitTag: UInt8 = 0xA0

    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        [tag] + length(content.count) + content
    }

    static func integer(_ value: Int64) -> [UInt8] {
        var bytes = withUnsafeBytes(of: value.bigEndian) { Array($0) }
        // The shortest two's complement form: a leading byte goes while the next one keeps the sign.
        while bytes.count > 1, bytes[0] == 0 && bytes[1] < 0x80 || bytes[0] == 0xFF && bytes[1] >= 0x80 {
            bytes.removeFirst()
        }
        return element(0x02, bytes)
    }

    static func octets(_ bytes: [UInt8]) -> [UInt8] { element(0x04, bytes) }

    static func utf8(_ text: String) -> [UInt8] { element(0x0C, Array(text.utf8)) }

    static func ia5(_ text: String) -> [UInt8] { element(0x16, Array(text.utf8)) }

    /// 1.2.840.113549.1.7.n: 1 is data, 2 is signed data.
    static func pkcs7(_ last: UInt8) -> [UInt8] {
        element(0x06, [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, last])
    }

    /// The size an element says it has, header included; nil when the header is broken.
    static func declaredSize(of bytes: some RandomAccessCollection<UInt8>) -> Int? {
        let head = Array(bytes.prefix(6))
        guard head.count >= 2 else { return nil }
        guard head[1] >= 0x80 else { return 2 + Int(head[1]) }
        let count = Int(head[1] & 0x7F)
        guard (1...4).contains(count), head.count >= 2 + count else { return nil }
        return 2 + count + head[2..<(2 + count)].reduce(0) { $0 << 8 | Int($1) }
    }

    private static func length(_ count: Int) -> [UInt8] {
        guard count >= 0x80 else { return [UInt8(count)] }
        var bytes: [UInt8] = []
        var rest = count
        while rest > 0 {
            bytes.insert(UInt8(rest & 0xFF), at: 0)
            rest >>= 8
        }
        return [0x80 | UInt8(bytes.count)] + bytes
    }
}
