import NIOCore

/// A parser of whole HTTP/1.1 requests in the bytes of a connection. It supports only the part of HTTP that clients of
/// verifyReceipt use.
struct RequestReader {
    /// The reason a connection must end.
    enum Refusal: Error {
        case badRequest
        case tooLarge
    }

    struct Request {
        let head: RequestHead
        let body: [UInt8]
    }

    private enum State {
        case head
        case body(RequestHead, length: Int)
        case chunks(RequestHead, ChunkedBody)
    }

    private static let headBytesMax = 64 << 10

    private let bodyBytesMax: Int
    private var bytes = ByteBuffer()
    private var state = State.head
    /// Whether the client waits for "100 Continue" before it sends the body.
    private var owesContinue = false

    init(bodyBytesMax: Int) {
        self.bodyBytesMax = bodyBytesMax
    }

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
    mutating func next() throws(Refusal) -> Request? {
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

    private mutating func finished(_ head: RequestHead, _ body: [UInt8]) -> Request {
        state = .head
        owesContinue = false
        return Request(head: head, body: body)
    }

    private mutating func readHead() throws(Refusal) -> RequestHead? {
        guard let length = bytes.withUnsafeReadableBytes({ Self.headLength(of: $0) }) else {
            guard bytes.readableBytes <= Self.headBytesMax else { throw .badRequest }
            return nil
        }
        let head = bytes.withUnsafeReadableBytes { RequestHead(UnsafeRawBufferPointer(rebasing: $0[..<length])) }
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
