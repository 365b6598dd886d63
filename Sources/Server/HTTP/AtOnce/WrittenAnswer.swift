import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// A response whose text is written, except for the headers about its request and the time.
struct WrittenAnswer: Sendable {
    var head: HTTPResponse
    let body: ByteBuffer?

    /// Creates a JSON response with a status and headers; nil is no body.
    init(_ text: JSONText?, status: HTTPResponse.Status = .ok, headers: HTTPFields) {
        head = HTTPResponse(status: status, headerFields: headers)
        body = text.map { ByteBuffer(bytes: $0.bytes) }
        if text != nil { head.headerFields.append(HTTPField(name: .contentType, value: "application/json")) }
    }

    /// The response for Hummingbird, which adds the remaining headers.
    var response: Response {
        Response(
            status: head.status, headers: head.headerFields, body: body.map(ResponseBody.init(byteBuffer:)) ?? .init())
    }

    /// Returns the complete response, with all headers.
    func complete(requestID: String, date: String) -> WrittenAnswer {
        var answer = self
        for (name, value) in [
            (HTTPField.Name.contentLength, String(body?.readableBytes ?? 0)), (.requestID, requestID), (.date, date),
            (.server, HTTPServer.name),
        ] {
            answer.head.headerFields.append(HTTPField(name: name, value: value))
        }
        return answer
    }
}

/// The text of the header `Date` (RFC 9110, section 6.6.1), formatted once a second.
final class DateField: Sendable {
    private let written = Mutex<(second: Int64, text: String)>((-1, ""))

    /// Returns the time as the header `Date` has it.
    func text(atMilliseconds milliseconds: Int64) -> String {
        let second = milliseconds / 1000
        return written.withLock { written in
            if written.second != second { written = (second, Self.text(atSecond: second)) }
            return written.text
        }
    }

    private static func text(atSecond second: Int64) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSince1970: Double(second)))
    }
}
