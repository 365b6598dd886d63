import NIOCore

/// HTTP/1.1 responses as bytes.
extension ByteBuffer {
    /// Writes the head of a response.
    mutating func writeHead(of reply: SimulatorReply, keepsAlive: Bool) {
        writeString("HTTP/1.1 \(reply.code) \(reply.reason)\r\n")
        for header in reply.headers { writeString("\(header.name): \(header.value)\r\n") }
        writeLength(reply.body.count, keepsAlive: keepsAlive)
    }

    /// Writes a whole response of verifyReceipt, the only kind made in great numbers.
    mutating func write(
        _ answer: RenderedAnswer, requestedAt moment: StoreTime, correlation: [UInt8], keepsAlive: Bool
    ) {
        let date = answer.requestDate(moment)
        let length = answer.size + date.count
        reserveCapacity(minimumWritableBytes: length + 256)
        writeStaticString("HTTP/1.1 200 OK\r\nx-apple-jingle-correlation-key: ")
        writeBytes(correlation)
        writeStaticString("\r\nx-apple-request-uuid: ")
        writeBytes(correlation)
        writeStaticString("\r\n")
        writeLength(length, keepsAlive: keepsAlive)
        writeBytes(answer.head)
        writeBytes(date)
        writeBytes(answer.tail)
    }

    private mutating func writeLength(_ length: Int, keepsAlive: Bool) {
        writeStaticString("Content-Length: ")
        writeString(String(length))
        writeStaticString(keepsAlive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n")
    }
}

extension SimulatorReply {
    /// The reason phrase. Clients ignore it; it is for human readers.
    fileprivate var reason: String {
        switch code {
        case 200..<300: "OK"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 409: "Conflict"
        case 413: "Content Too Large"
        case 429: "Too Many Requests"
        case 503: "Service Unavailable"
        case 400..<500: "Bad Request"
        default: "Internal Server Error"
        }
    }
}
