/// A writer of the few parts of DER in a receipt. It writes from the end, because a length stands before its content:
/// every length is then known when its turn comes. Callers therefore write the last element first.
struct DERWriter {
    static let sequenceTag: UInt8 = 0x30
    static let setTag: UInt8 = 0x31
    static let explicitTag: UInt8 = 0xA0
    private static let octetsTag: UInt8 = 0x04

    private var backward: [UInt8] = []

    init(reserving count: Int) {
        backward.reserveCapacity(count)
    }

    /// All bytes, in the final order.
    var bytes: [UInt8] { backward.reversed() }

    mutating func element(_ tag: UInt8, _ content: (inout DERWriter) -> Void) {
        let end = backward.count
        content(&self)
        header(tag, length: backward.count - end)
    }

    /// Writes an octet string that contains other elements.
    mutating func octets(_ content: (inout DERWriter) -> Void) { element(Self.octetsTag, content) }

    mutating func octets(_ bytes: [UInt8]) { octets { $0.backward.append(contentsOf: bytes.reversed()) } }

    mutating func integer(_ value: Int64) {
        let end = backward.count
        var rest = value
        // The shortest two's complement form: it ends when the rest is only the sign of the byte before.
        repeat {
            backward.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        } while rest != (backward[backward.count - 1] >= 0x80 ? -1 : 0)
        header(0x02, length: backward.count - end)
    }

    mutating func utf8(_ text: String) { string(0x0C, text) }

    mutating func ia5(_ text: String) { string(0x16, text) }

    /// Writes 1.2.840.113549.1.7.n: 1 is data, 2 is signed data.
    mutating func pkcs7(_ last: UInt8) {
        backward.append(last)
        for byte: UInt8 in [0x07, 0x01, 0x0D, 0xF7, 0x86, 0x48, 0x86, 0x2A] { backward.append(byte) }
        header(0x06, length: 9)
    }

    /// Returns the size an element declares, header included; nil when the header is broken.
    static func declaredSize(of bytes: some RandomAccessCollection<UInt8>) -> Int? {
        let head = Array(bytes.prefix(6))
        guard head.count >= 2 else { return nil }
        guard head[1] >= 0x80 else { return 2 + Int(head[1]) }
        let count = Int(head[1] & 0x7F)
        guard (1...4).contains(count), head.count >= 2 + count else { return nil }
        return 2 + count + head[2..<(2 + count)].reduce(0) { $0 << 8 | Int($1) }
    }

    private mutating func string(_ tag: UInt8, _ text: String) {
        backward.append(contentsOf: text.utf8.reversed())
        header(tag, length: text.utf8.count)
    }

    private mutating func header(_ tag: UInt8, length: Int) {
        if length < 0x80 {
            backward.append(UInt8(length))
        } else {
            var rest = length
            var count: UInt8 = 0
            while rest > 0 {
                backward.append(UInt8(truncatingIfNeeded: rest))
                rest >>= 8
                count += 1
            }
            backward.append(0x80 | count)
        }
        backward.append(tag)
    }
}
