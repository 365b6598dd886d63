import AsyncHTTPClient
import NIOCore
import NIOSSL

/// Sentences for every failure on the way to Apple. None quotes a body or a request, because those may contain secrets.
/// None quotes the network's error either, because it names hosts; that text is the detail, for the log.
enum CallFailure {
    static let followedRedirect =
        "The answer came from a redirect and is not trusted; make the HTTP client with AppStoreOptions.clientConfiguration."

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
    static func failure(_ error: any Error) -> String { known(error) ?? unreachable(error) }

    /// Returns the network's name of an error, in a few printable words; nil if `failure` says as much.
    static func detail(of error: any Error) -> String? { known(error) == nil ? name(of: error) : nil }

    /// Returns the sentence of an error that needs no detail.
    private static func known(_ error: any Error) -> String? {
        if error is CancellationError { return "The check was cancelled, for example because the process is stopping." }
        if error as? NIOSSLError == .uncleanShutdown { return closedTooEarly }
        guard let error = error as? HTTPClientError else { return nil }
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

    private static func unreachable(_ error: any Error) -> String {
        TLSFailure(error)?.sentence ?? "The store could not be reached."
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
