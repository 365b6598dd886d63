import AsyncHTTPClient
import Foundation
import JSON
import NIOCore
import NIOHTTP1
import NIOSSL
package import Subscriptions

/// The result of asking Apple about one receipt. An outage is a result too: `response` is nil and `failure` says why.
package struct AppStoreAnswer: Sendable {
    /// The endpoint that gave the final answer, or failed to.
    package let environment: StoreEnvironment
    /// The HTTP status of the final call; nil when none arrived.
    package let httpStatus: Int?
    /// The final body as received, at most `AppStoreOptions.responseBytesMax`; empty if none arrived or it was too
    /// large. After a broken transfer, the part that arrived.
    package let body: [UInt8]
    /// What the bytes of the body show; nil if HTTP was not 200.
    package internal(set) var outline: AnswerOutline?
    /// What the Server API said; nil for an answer of verifyReceipt.
    package internal(set) var server: ServerVerdict?
    /// The endpoint of the Server API that was asked last; nil for an answer of verifyReceipt.
    package internal(set) var lastEndpoint: ServerEndpoint?
    /// The body of an answer of verifyReceipt, where its call succeeded.
    let unread: UnreadBody?
    /// Why the call brought no usable answer, in one sentence; nil where the body has to show it.
    let callFailure: String?
    /// The network's own description of the failure, if `failure` says less; for the log. Never contains a secret.
    package internal(set) var failureDetail: String?
    /// The number of requests sent for this answer: of verifyReceipt 0 to 3.
    package let calls: Int
    /// Whether the final call used the previous secret; unless its status is 21004 again, the current secret is wrong.
    package internal(set) var usedPreviousSecret = false
    /// The duration of all calls together, in milliseconds.
    package let elapsedMilliseconds: Int
    /// Whether Apple was not asked, because it refuses the app's shared secret.
    package var isHeldBack = false
    /// What the Server API said beside this answer of verifyReceipt, to compare both; nil where one channel was asked.
    package var compared: ServerVerdict?
    /// Where verifyReceipt refused the app's secret, so that this answer of the Server API counts; nil otherwise.
    package var secretRefusedIn: StoreEnvironment?
    /// The wait that Apple asked for with HTTP other than 200, in seconds, of any length.
    package internal(set) var retryAfterSeconds: Double?

    /// The body, which the first call decodes; nil if the call failed or it is no verifyReceipt answer.
    package var response: VerifyReceiptResponse? { try? unread?.decoded.get() }

    /// The reason there is no usable response, in one sentence; nil if there is one. Never contains a secret, a receipt
    /// or a host name, so that it may be shown to any reader. The first call may decode the body.
    package var failure: String? {
        guard case .failure(let error) = unread?.decoded else { return callFailure }
        // An answer from storage has no HTTP status.
        return httpStatus == nil
            ? "Not an App Store answer: \(error.reason)."
            : "The store answered HTTP 200 with \(error.reason); ask again later."
    }

    /// The failure with its detail, for the operator.
    package var failureInFull: String? {
        failure.map { sentence in failureDetail.map { "\(sentence) (\($0))" } ?? sentence }
    }
}

extension AppStoreAnswer {
    /// Creates an answer, for tests and other implementations of the client. Its body is decoded unless there is a
    /// `failure`.
    package init(
        environment: StoreEnvironment, httpStatus: Int?, body: [UInt8], failure: String?, failureDetail: String? = nil,
        calls: Int, usedPreviousSecret: Bool, elapsedMilliseconds: Int,
        retryAfterSeconds: Double? = nil
    ) {
        self.init(
            environment: environment, httpStatus: httpStatus, body: body,
            outline: httpStatus == 200 ? AnswerOutline(of: body) : nil,
            unread: failure == nil ? UnreadBody(body) : nil, callFailure: failure, failureDetail: failureDetail,
            calls: calls, usedPreviousSecret: usedPreviousSecret, elapsedMilliseconds: elapsedMilliseconds,
            retryAfterSeconds: retryAfterSeconds)
    }

    /// Creates an answer of the Server API. Its body is the text that ``ServerContents`` reads; empty without one.
    package init(
        environment: StoreEnvironment, server: ServerVerdict, httpStatus: Int?, body: [UInt8] = [],
        failureDetail: String? = nil, calls: Int, elapsedMilliseconds: Int = 0,
        retryAfterSeconds: Double? = nil, lastEndpoint: ServerEndpoint = .statuses
    ) {
        self.init(
            environment: environment, httpStatus: httpStatus, body: body, server: server, lastEndpoint: lastEndpoint,
            unread: nil, callFailure: server.sentence, failureDetail: failureDetail, calls: calls,
            elapsedMilliseconds: elapsedMilliseconds,
            retryAfterSeconds: retryAfterSeconds)
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

extension String {
    /// Returns this text on one line and no longer than `charactersMax`, because a server's text must not break a log.
    func printable(charactersMax: Int) -> String {
        if utf8.count <= charactersMax, utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return self }
        return String(
            prefix(charactersMax).map { $0.isASCII && !$0.isNewline && $0 >= " " && $0 != "\u{7F}" ? $0 : "?" })
    }
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
