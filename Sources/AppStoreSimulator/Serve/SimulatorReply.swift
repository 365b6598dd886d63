import Foundation
import NIOCore

/// One HTTP request, with the parts the store uses.
package struct SimulatorRequest: Sendable {
    /// `GET`, `POST` and so on.
    package var method: String
    /// The path with its query.
    package var path: String
    package var body: [UInt8] = []
    /// The value of the header `Authorization`.
    package var authorization: String?
}

/// One HTTP response, and the fault in its delivery.
package struct SimulatorReply: Sendable {
    package enum Delivery: Sendable, Equatable {
        /// All of it.
        case whole
        /// The declared length is that of the whole body, but the connection closes after this many bytes.
        case cut(bytes: Int)
        /// All of it, in small pieces spread over this many seconds.
        case dripping(seconds: Double)
        /// Nothing; the connection closes after the delay.
        case never
    }

    package var code = 200
    /// Names and values, without Content-Length.
    package var headers: [(name: String, value: String)] = []
    package var body: [UInt8]
    /// Seconds to wait before the first byte is sent.
    package var delaySeconds = 0.0
    package var delivery = Delivery.whole
}

/// The forms of responses that are not Apple's verifyReceipt: JSON, lines, refusals.
extension SimulatorReply {
    /// Returns a value as JSON.
    static func json(_ value: some Encodable, code: Int = 200) throws -> SimulatorReply {
        SimulatorReply(
            code: code, headers: [("Content-Type", "application/json")],
            body: Array(try JSONEncoder.control.encode(value)))
    }

    /// Returns what was found about a customer, or that there is none.
    static func customer(_ found: (some Encodable)?) throws -> SimulatorReply {
        try found.map { try json($0) } ?? refused(404, "there is no such customer")
    }

    /// Returns the lines that `perennial import` reads. Their texts need no escapes.
    static func lines(
        _ subject: StaticString, _ lines: [(app: String, customer: String, text: String)]
    ) -> SimulatorReply {
        var body: [UInt8] = []
        for line in lines {
            body += JSONWriter.object(reserving: line.text.utf8.count + 128) { json in
                json.text("app", line.app)
                json.text("customer", line.customer)
                json.text(subject, line.text)
            }
            body.append(UInt8(ascii: "\n"))
        }
        return SimulatorReply(headers: [("Content-Type", "application/x-ndjson")], body: body)
    }

    /// Returns the refusal of a control call, with its reason.
    static func refused(_ code: Int, _ reason: String) -> SimulatorReply {
        .object(code) { $0.text("error", reason) }
    }

    /// Returns the JSON object that `body` writes.
    static func object(_ code: Int = 200, _ body: (inout JSONWriter) throws -> Void) rethrows -> SimulatorReply {
        SimulatorReply(code: code, headers: [("Content-Type", "application/json")], body: try JSONWriter.object(body))
    }
}

extension JSONEncoder {
    /// An encoder for control calls that sorts keys, so that equal truths are equal bytes, and does not escape the
    /// slashes of Base64.
    fileprivate static var control: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }
}

/// HTTP/1.1 responses as bytes.
extension ByteBuffer {
    /// Writes the status line and the headers of a response.
    mutating func writeHead(of reply: SimulatorReply, keepsAlive: Bool) {
        writeString("HTTP/1.1 \(reply.code) \(reply.reason)\r\n")
        for header in reply.headers { writeString("\(header.name): \(header.value)\r\n") }
        writeLength(reply.body.count, keepsAlive: keepsAlive)
    }

    /// Writes a whole response of verifyReceipt, the only kind made in great numbers.
    mutating func write(
        _ answer: RenderedAnswer, requestedAt moment: StoreTime, correlation: String, keepsAlive: Bool
    ) {
        let date = answer.requestDate(moment)
        let length = answer.size + date.count
        reserveCapacity(minimumWritableBytes: length + 256)
        writeStaticString("HTTP/1.1 200 OK\r\nx-apple-jingle-correlation-key: ")
        writeString(correlation)
        writeStaticString("\r\nx-apple-request-uuid: ")
        writeString(correlation)
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

/// A chunked body of unknown length, read as it arrives.
struct ChunkedBody {
    private enum State {
        case size
        case data(left: Int)
        case trailer
    }

    private static let lineBytesMax = 1024

    private(set) var bytes: [UInt8] = []
    private var state = State.size

    /// Reads the bytes so far; returns true when the last chunk has been read.
    mutating func read(_ buffer: inout ByteBuffer, max: Int) throws(StoreRequestReader.Refusal) -> Bool {
        while true {
            switch state {
            case .size:
                guard let line = try Self.line(&buffer) else { return false }
                if line.isEmpty { continue }
                let digits = line.prefix { $0 != ";" && $0 != " " }
                guard let size = Int(digits, radix: 16), size >= 0 else { throw .badRequest }
                guard size <= max - bytes.count else { throw .tooLarge }
                state = size == 0 ? .trailer : .data(left: size)
            case .data(let left):
                guard let part = buffer.readBytes(length: min(left, buffer.readableBytes)), !part.isEmpty else {
                    return false
                }
                bytes += part
                state = part.count == left ? .size : .data(left: left - part.count)
            case .trailer:
                guard let line = try Self.line(&buffer) else { return false }
                if line.isEmpty { return true }
            }
        }
    }

    /// Returns a line without its line end; nil when it is incomplete.
    private static func line(_ buffer: inout ByteBuffer) throws(StoreRequestReader.Refusal) -> String? {
        guard let end = buffer.readableBytesView.firstIndex(of: 0x0A) else {
            guard buffer.readableBytes <= lineBytesMax else { throw .badRequest }
            return nil
        }
        let text = buffer.readString(length: end - buffer.readerIndex) ?? ""
        buffer.moveReaderIndex(forwardBy: 1)
        return text.hasSuffix("\r") ? String(text.dropLast()) : text
    }
}
