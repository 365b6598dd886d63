package import AsyncHTTPClient
import Foundation
import NIOHTTP1

/// Apple's history of notifications as Perennial sees it: one page. A struct with one closure, as ``ServerAPIClient`` is.
package struct NotificationHistoryClient: Sendable {
    /// Asks Apple for a page. Never throws: an outage is an answer too.
    package var read: @Sendable (NotificationHistoryRequest) async -> NotificationHistoryAnswer

    /// Creates a client that answers with `read`.
    package init(read: @escaping @Sendable (NotificationHistoryRequest) async -> NotificationHistoryAnswer) {
        self.read = read
    }

    /// Returns a client of the real Server API. The caller shuts the HTTP client down.
    package static func live(_ options: ServerAPIOptions, client: HTTPClient) -> NotificationHistoryClient {
        let caller = ServerCaller(
            options: options, http: HTTPCall(client: client, responseBytesMax: options.responseBytesMax),
            tokens: ServerTokens())
        return NotificationHistoryClient { request in
            let (reply, result, _) = await caller.call(
                .notificationHistory(request), of: request.key, in: request.environment,
                until: ContinuousClock.now + options.deadline)
            return NotificationHistoryAnswer(reply, result)
        }
    }
}

/// A request for a page of the notifications that Apple sent, or tried to send, between two instants.
package struct NotificationHistoryRequest: Sendable {
    /// The key that signs the request.
    package var key: ServerKey
    /// The environment to ask.
    package var environment: Endpoint
    /// The first instant, in milliseconds since 1970.
    package var from: Int64
    /// The instant after the last one, in milliseconds since 1970.
    package var until: Int64
    /// Whether only those are wanted that did not arrive.
    package var onlyFailures: Bool
    /// Apple's token of the page; nil: the first one.
    package var page: String?

    /// Creates a request.
    package init(
        key: ServerKey, environment: Endpoint, from: Int64, until: Int64, onlyFailures: Bool, page: String?
    ) {
        self.key = key
        self.environment = environment
        self.from = from
        self.until = until
        self.onlyFailures = onlyFailures
        self.page = page
    }
}

/// Apple's answer to a request for a page.
package enum NotificationHistoryAnswer: Sendable {
    /// The signed texts of a page, not verified, and the token of the next page; nil: it is the last.
    case page([[UInt8]], next: String?)
    /// Apple does not know the token of the page any more.
    case placeLost
    /// Apple's history does not go back that far.
    case startTooOld
    /// Nothing was learnt; one sentence, and the seconds after which Apple wants to be asked again.
    case failed(String, retryAfterSeconds: Double?)
}

extension NotificationHistoryAnswer {
    /// `StartDateTooFarInPastError`.
    private static let startTooOldCode = 4_000_012

    init(_ reply: ServerReply, _ result: CallResult) {
        switch reply {
        case .answered(let document): self.init(document)
        case .unauthorized: self = .failed(ServerVerdict.keyRefused.sentence ?? "", retryAfterSeconds: nil)
        case .error(Self.startTooOldCode, _): self = .startTooOld
        case .error(_, .placeLost): self = .placeLost
        case .error(let code, let meaning):
            self = .failed(
                ServerVerdict(code, meaning).sentence ?? "Apple refused the request (\(code)).",
                retryAfterSeconds: RetryAfter.seconds(in: result.headers, now: Date()))
        case .accepted: self = .failed(ServerReply.noObject, retryAfterSeconds: nil)
        case .failed(let sentence, _): self = .failed(sentence, retryAfterSeconds: nil)
        }
    }

    private init(_ document: JSONDocument) {
        let members = document.members(JSONDocument.root)
        let rows = members["notificationHistory"].map(document.elements) ?? []
        let texts = rows.compactMap { document.members($0)["signedPayload"].flatMap(document.scalar) }
        let hasMore = members["hasMore"].flatMap(document.scalar) == "true"
        let next = members["paginationToken"].flatMap(document.scalar)
        guard texts.count == rows.count, !hasMore || next != nil else {
            self = .failed("Apple's history of notifications cannot be read; ask again later.", retryAfterSeconds: nil)
            return
        }
        self = .page(texts.map { Array($0.utf8) }, next: hasMore ? next : nil)
    }
}

extension ServerCall {
    /// Returns the call for a page of the history of notifications.
    static func notificationHistory(_ request: NotificationHistoryRequest) -> ServerCall {
        let place = request.page.map { "?paginationToken=\(encoded($0))" } ?? ""
        let failures = request.onlyFailures ? #","onlyFailures":true"# : ""
        return ServerCall(
            method: .POST, path: "/inApps/v1/notifications/history\(place)",
            body: Array(#"{"startDate":\#(request.from),"endDate":\#(request.until)\#(failures)}"#.utf8))
    }
}
