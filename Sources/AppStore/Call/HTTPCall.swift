import AsyncHTTPClient
package import Foundation
import JSON
import NIOCore
import NIOSSL
package import NIOHTTP1
import Subscriptions
import Synchronization

/// Makes one call: sends a body to an address and reads a bounded answer before a deadline.
struct HTTPCall: Sendable {
    let client: HTTPClient
    let look: CertificateInspection
    let responseBytesMax: Int
    /// The seconds a body may arrive at any speed before the minimum speed applies.
    let slowSecondsMax: Double

    init(client: HTTPClient, responseBytesMax: Int, slowSecondsMax: Double = AnswerGathering.slowSecondsMax) {
        self.client = client
        self.responseBytesMax = responseBytesMax
        self.slowSecondsMax = slowSecondsMax
        look = CertificateInspection(on: client.eventLoopGroup)
    }

    static let jsonHeaders: HTTPHeaders = ["content-type": "application/json", "user-agent": "perennial"]

    /// Calls `url`; never throws.
    func call(
        _ url: String, _ method: HTTPMethod = .POST, headers: HTTPHeaders = jsonHeaders, sending body: ByteBuffer?,
        until end: ContinuousClock.Instant
    ) async -> CallResult {
        do {
            let request = try HTTPClient.Request(
                url: url, method: method, headers: headers, body: body.map { .byteBuffer($0) })
            return await send(request, until: end)
        } catch {
            return failed(CallResult(), error)
        }
    }

    /// Sends a request; never throws.
    func send(_ request: HTTPClient.Request, until end: ContinuousClock.Instant) async -> CallResult {
        let gathering = AnswerGathering(bytesMax: responseBytesMax, slowSecondsMax: slowSecondsMax)
        do {
            let left = max(.zero, ContinuousClock.now.duration(to: end))
            let task = client.execute(
                request: request, delegate: gathering, deadline: .now() + .nanoseconds(left.wholeNanoseconds))
            try await withTaskCancellationHandler {
                try await task.get()
            } onCancel: {
                task.cancel()
            }
        } catch {
            var result = failed(gathering.result, error)
            if TLSFailure(error) == .unverified, ContinuousClock.now + CertificateInspection.limit < end {
                result.failure = await look.failure(at: request.url.absoluteString).sentence
            }
            return result
        }
        var result = gathering.result
        if let status = result.httpStatus, status != 200 {
            result.failure = CallFailure.http(status, body: result.body)
        }
        // The client may have been made without our configuration: an answer from another address is not Apple's.
        if gathering.followedRedirect {
            result.body = []
            result.failure = CallFailure.followedRedirect
        }
        return result
    }

    /// Returns the part that had arrived when the call failed, with the reason for the failure.
    private func failed(_ arrived: CallResult, _ error: any Error) -> CallResult {
        var result = arrived
        if error is AnswerGathering.TooLarge {
            result.body = []
            result.failure = CallFailure.tooLarge(responseBytesMax)
        } else if error is AnswerGathering.TooSlow {
            result.body = []
            result.failure = CallFailure.tooSlow
        } else if let status = arrived.httpStatus, status != 200 {
            result.failure = CallFailure.http(status, body: arrived.body)
        } else if arrived.httpStatus != nil, !CallFailure.isOutOfTime(error) {
            result.failure = CallFailure.brokenTransfer(bytes: arrived.body.count)
            result.failureDetail = CallFailure.name(of: error)
        } else {
            result.body = []
            result.failure = CallFailure.failure(error)
            result.failureDetail = CallFailure.detail(of: error)
        }
        return result
    }
}

/// The result of one HTTP call, not yet interpreted.
struct CallResult: Sendable {
    /// Nil if no answer began.
    var httpStatus: Int?
    var headers = HTTPHeaders()
    var body: [UInt8] = []
    /// The reason there is no complete answer with HTTP 200; nil if there is one.
    var failure: String?
    var failureDetail: String?

    /// The wait that a status other than 200 asks for, in seconds.
    var retryAfterSeconds: Double? { httpStatus == 200 ? nil : RetryAfter.seconds(in: headers, now: Date()) }
}

/// Sentences for every failure on the way to Apple. None quotes a body or a request, because those may contain secrets.
/// None quotes the network's error either, because it names hosts; that text is the detail, for the log.
enum CallFailure {
    static let followedRedirect =
        "The answer came from a redirect and is not trusted; make the HTTP client with AppStoreOptions.withClient."

    static let noTimeLeft = "The time for this check was used up before the next call; it will be asked again."

    static func requestTooLarge(_ bytes: Int, limit: Int) -> String {
        "The receipt has \(bytes) bytes of Base64, more than the limit of \(limit); it was not sent."
    }

    static func tooLarge(_ limit: Int) -> String {
        "The answer is larger than the limit of \(limit) bytes; it was not read."
    }

    static let tooSlow =
        "The answer came in drops, less than a kilobyte a second, and was not waited for; it will be asked again."

    private static let closedTooEarly = "The store closed the connection before answering."

    static func brokenTransfer(bytes: Int) -> String { "The answer broke off after \(bytes) bytes." }

    /// Describes an HTTP status other than 200, with the kind of body received.
    static func http(_ status: Int, body: [UInt8]) -> String {
        switch status {
        case 300..<400: "The store answered HTTP \(status); redirects are not followed, check the configured address."
        case 429: "The store answered HTTP 429: too many requests; ask more slowly."
        case 400..<500: "The store answered HTTP \(status)\(kind(of: body)); check the configured address."
        default: "The store answered HTTP \(status)\(kind(of: body)); the store has a problem, ask again later."
        }
    }

    /// Returns whether our own time limit ended the transfer, rather than a transfer failure.
    static func isOutOfTime(_ error: any Error) -> Bool {
        guard let error = error as? HTTPClientError else { return error is CancellationError }
        return [.cancelled, .deadlineExceeded, .readTimeout].contains(error)
    }

    /// Describes a call that brought no answer.
    static func failure(_ error: any Error) -> String {
        known(error) ?? TLSFailure(error)?.sentence ?? "The store could not be reached."
    }

    /// Returns the network's name of an error, in a few printable words; nil if `failure` says as much.
    static func detail(of error: any Error) -> String? { known(error) == nil ? name(of: error) : nil }

    /// Returns the sentence of an error that needs no detail.
    private static func known(_ error: any Error) -> String? {
        if error as? NIOSSLError == .uncleanShutdown { return closedTooEarly }
        guard let error = error is CancellationError ? .cancelled : error as? HTTPClientError else { return nil }
        switch error {
        case .cancelled: return "The check was cancelled, for example because the process is stopping."
        case .deadlineExceeded, .readTimeout, .writeTimeout: return "The store did not answer in time."
        case .connectTimeout, .getConnectionFromPoolTimeout: return "No connection to the store could be made in time."
        case .tlsHandshakeTimeout: return "The TLS handshake with the store took too long."
        case .remoteConnectionClosed: return closedTooEarly
        case .invalidURL, .emptyHost, .emptyScheme:
            return "The configured address of the store is not a URL; check the configuration."
        default: return nil
        }
    }

    /// Returns the network's name of an error, in a few printable words.
    static func name(of error: any Error) -> String {
        let text = (error as? HTTPClientError)?.shortDescription ?? String(describing: error)
        return text.printable(charactersMax: 160)
    }

    private static func kind(of body: [UInt8]) -> String {
        switch body.first(where: { !$0.isWhiteSpace }) {
        case nil: " with an empty body"
        case UInt8(ascii: "<"): " with a web page"
        case UInt8(ascii: "{"): " with a JSON object"
        case .some: " with a text"
        }
    }
}

/// Gathers one answer on the client's event loop, up to a bounded size; keeps the part that arrived before a failure.
final class AnswerGathering: HTTPClientResponseDelegate {
    typealias Response = Void

    /// The answer announced or contained more bytes than allowed.
    struct TooLarge: Error {}

    /// The answer comes so slowly that it only occupies a connection.
    struct TooSlow: Error {}

    /// The seconds a body may arrive at any speed, and the minimum average in bytes per second from then on.
    static let slowSecondsMax = 5.0
    static let bytesPerSecondMin = 1024.0

    private struct Arrived {
        var result = CallResult()
        var heads = 0
        var bodyBegan = NIODeadline.distantFuture
    }

    private let bytesMax: Int
    private let slowSecondsMax: Double
    private let arrived = Mutex(Arrived())

    init(bytesMax: Int, slowSecondsMax: Double) { (self.bytesMax, self.slowSecondsMax) = (bytesMax, slowSecondsMax) }

    var result: CallResult { arrived.withLock { $0.result } }

    /// Whether the answer came from an address other than the one asked.
    var followedRedirect: Bool { arrived.withLock { $0.heads > 1 } }

    func didVisitURL(task: HTTPClient.Task<Void>, _ request: HTTPClient.Request, _ head: HTTPResponseHead) {
        arrived.withLock { $0.heads += 1 }
    }

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
        arrived.withLock { arrived in
            arrived.result.httpStatus = Int(head.status.code)
            arrived.result.headers = head.headers
            arrived.bodyBegan = .now()
            // An announced length does not justify reserving much memory before the bytes arrive.
            if announced <= bytesMax { arrived.result.body.reserveCapacity(min(max(announced, 0), 1 << 20)) }
        }
        return announced > bytesMax
            ? task.eventLoop.makeFailedFuture(TooLarge()) : task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
        let refusal: (any Error)? = arrived.withLock { arrived in
            guard arrived.result.body.count + buffer.readableBytes <= bytesMax else {
                arrived.result.body = []
                return TooLarge()
            }
            arrived.result.body.append(contentsOf: buffer.readableBytesView)
            let seconds = Double((NIODeadline.now() - arrived.bodyBegan).nanoseconds) / 1e9
            let isSlow = Double(arrived.result.body.count) < seconds * Self.bytesPerSecondMin
            return isSlow && seconds > slowSecondsMax ? TooSlow() : nil
        }
        return refusal.map { task.eventLoop.makeFailedFuture($0) } ?? task.eventLoop.makeSucceededVoidFuture()
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {}
}

/// Reads how long a server asks clients to wait: the header `Retry-After` with seconds or an HTTP date (RFC 9110,
/// section 10.2.3), or with an instant in milliseconds since 1970, as Apple's newer API sends it.
package enum RetryAfter {
    /// A number this large is not a delay but an instant, in seconds or in milliseconds since 1970.
    static let momentSecondsMin = 1e9
    static let momentMillisecondsMin = 1e11

    /// Returns the seconds to wait, the longest of several values and never negative; nil if no value is readable.
    /// Instants are compared with the server's own clock (the header `Date`), and with `now` only without that header.
    package static func seconds(in headers: HTTPHeaders, now: Date) -> Double? {
        let clock = headers.first(name: "date").flatMap(date) ?? now
        return headers[canonicalForm: "retry-after"].compactMap { seconds(String($0), since: clock) }.max()
            .map { max(0, $0) } ?? dated(headers, since: clock)
    }

    /// Reads HTTP dates from unsplit headers: a date contains a comma, at which lists are split.
    private static func dated(_ headers: HTTPHeaders, since clock: Date) -> Double? {
        headers["retry-after"].compactMap(date).map { max(0, $0.timeIntervalSince(clock)) }.max()
    }

    private static func seconds(_ text: String, since clock: Date) -> Double? {
        let trimmed = text.trimmingCharacters(in: .whitespaces)
        guard !trimmed.isEmpty, trimmed.utf8.allSatisfy({ $0 >= 0x2B && $0 <= 0x39 && $0 != 0x2F }),
            let number = Double(trimmed), number.isFinite
        else { return nil }
        if number >= momentMillisecondsMin { return number / 1000 - clock.timeIntervalSince1970 }
        if number >= momentSecondsMin { return number - clock.timeIntervalSince1970 }
        return number
    }

    /// Reads an HTTP date in any of its three forms.
    private static func date(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        return ["EEE, dd MMM yyyy HH:mm:ss zzz", "EEEE, dd-MMM-yy HH:mm:ss zzz", "EEE MMM d HH:mm:ss yyyy"].lazy
            .compactMap { form in
                formatter.dateFormat = form
                return formatter.date(from: text.trimmingCharacters(in: .whitespaces))
            }.first
    }
}

extension String {
    /// Returns this text on one line and no longer than `charactersMax`, because a server's text must not break a log.
    func printable(charactersMax: Int) -> String {
        if utf8.count <= charactersMax, utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return self }
        return String(
            prefix(charactersMax).map { $0.isASCII && !$0.isNewline && $0 >= " " && $0 != "\u{7F}" ? $0 : "?" })
    }
}
