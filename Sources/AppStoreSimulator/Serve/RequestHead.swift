/// The request line and the few headers the simulator uses.
struct RequestHead: Sendable {
    let method: String
    /// The path with its query.
    let path: String
    private(set) var keepsAlive: Bool
    private(set) var length = 0
    private(set) var isChunked = false
    private(set) var expectsContinue = false
    private(set) var authorization: String?

    /// Parses a head; nil when it is not HTTP/1.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: true).makeIterator()
        guard let line = lines.next() else { return nil }
        let words = Self.trimmed(line).split(separator: 0x20, omittingEmptySubsequences: true)
        guard words.count == 3, words[2].starts(with: "HTTP/1.".utf8) else { return nil }
        method = String(decoding: words[0], as: UTF8.self)
        path = String(decoding: words[1], as: UTF8.self)
        keepsAlive = words[2].last == UInt8(ascii: "1")
        while let line = lines.next() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            guard take(line[..<colon], Self.trimmed(line[(colon + 1)...])) else { return nil }
        }
    }

    /// Reads a header; returns false when a length is not a number. For speed it inspects only headers of a few
    /// lengths.
    private mutating func take(_ name: Slice<UnsafeRawBufferPointer>, _ value: Slice<UnsafeRawBufferPointer>) -> Bool {
        switch name.count {
        case 14 where Self.isEqual(name, "content-length"):
            guard let number = Int(String(decoding: value, as: UTF8.self)), number >= 0 else { return false }
            length = number
        case 13 where Self.isEqual(name, "authorization"): authorization = String(decoding: value, as: UTF8.self)
        case 17 where Self.isEqual(name, "transfer-encoding"): isChunked = Self.isEqual(value, "chunked")
        case 10 where Self.isEqual(name, "connection"):
            if Self.isEqual(value, "close") { keepsAlive = false }
            if Self.isEqual(value, "keep-alive") { keepsAlive = true }
        case 6 where Self.isEqual(name, "expect"): expectsContinue = Self.isEqual(value, "100-continue")
        default: break
        }
        return true
    }

    /// Returns whether bytes and word are equal, ignoring case.
    private static func isEqual(_ bytes: Slice<UnsafeRawBufferPointer>, _ word: StaticString) -> Bool {
        guard bytes.count == word.utf8CodeUnitCount else { return false }
        return word.withUTF8Buffer { word in
            zip(bytes, word).allSatisfy { byte, letter in
                byte == letter || byte | 0x20 == letter && (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            }
        }
    }

    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        var bytes = bytes
        while let first = bytes.first, first <= 0x20 { bytes.removeFirst() }
        while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
        return bytes
    }
}
