import NIOCore

/// A parser of the requests in the bytes of a connection: the part of HTTP/1.1 that clients of verifyReceipt use.
struct StoreRequestReader {
    /// The reason a connection must end.
    enum Refusal: Error {
        case badRequest
        case tooLarge
    }

    private enum State {
        case head
        case body(StoreRequestHead, length: Int)
        case chunks(StoreRequestHead, ChunkedBody)
    }

    private static let headBytesMax = 64 << 10

    private let bodyBytesMax: Int
    private var bytes = ByteBuffer()
    private var state = State.head
    /// Whether the client waits for "100 Continue" before it sends the body.
    private var owesContinue = false

    init(bodyBytesMax: Int) { self.bodyBytesMax = bodyBytesMax }

    /// Takes the bytes that have arrived on the connection.
    mutating func append(_ more: inout ByteBuffer) {
        guard bytes.readableBytes > 0 else { return swap(&bytes, &more) }
        bytes.writeBuffer(&more)
    }

    /// Returns true once for each request whose client waits for "100 Continue".
    mutating func takeContinue() -> Bool {
        defer { owesContinue = false }
        return owesContinue
    }

    /// Returns the next whole request; nil when more bytes are needed.
    mutating func next() throws(Refusal) -> (head: StoreRequestHead, body: [UInt8])? {
        switch state {
        case .head:
            guard let head = try readHead() else { return nil }
            guard head.length <= bodyBytesMax else { throw .tooLarge }
            state = head.isChunked ? .chunks(head, ChunkedBody()) : .body(head, length: head.length)
            owesContinue = head.expectsContinue
            return try next()
        case .body(let head, let length):
            guard let body = bytes.readBytes(length: length) else { return nil }
            return finished(head, body)
        case .chunks(let head, var body):
            let isWhole = try body.read(&bytes, max: bodyBytesMax)
            state = .chunks(head, body)
            return isWhole ? finished(head, body.bytes) : nil
        }
    }

    /// Ends a request that is whole.
    private mutating func finished(
        _ head: StoreRequestHead, _ body: [UInt8]
    ) -> (head: StoreRequestHead, body: [UInt8]) {
        state = .head
        owesContinue = false
        return (head, body)
    }

    /// Reads the request line and the headers; nil when more bytes are needed.
    private mutating func readHead() throws(Refusal) -> StoreRequestHead? {
        guard let length = bytes.withUnsafeReadableBytes({ Self.headLength(of: $0) }) else {
            guard bytes.readableBytes <= Self.headBytesMax else { throw .badRequest }
            return nil
        }
        let head = bytes.withUnsafeReadableBytes { StoreRequestHead(UnsafeRawBufferPointer(rebasing: $0[..<length])) }
        bytes.moveReaderIndex(forwardBy: length)
        guard let head else { throw .badRequest }
        return head
    }

    /// Returns the length of the head including the empty line.
    private static func headLength(of bytes: UnsafeRawBufferPointer) -> Int? {
        var position = 3
        while position < bytes.count {
            if bytes[position] == 0x0A, bytes[position - 1] == 0x0D, bytes[position - 2] == 0x0A { return position + 1 }
            position += 1
        }
        return nil
    }
}

/// The request line and the few headers the simulator uses.
struct StoreRequestHead: Sendable {
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

    /// Reads a header; returns false when a length is not a number. For speed it compares few names.
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
