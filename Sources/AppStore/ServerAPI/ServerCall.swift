import Foundation
import NIOCore
import NIOHTTP1

/// What one call of the Server API brought.
enum ServerReply: Sendable {
    /// HTTP 200 and a JSON object.
    case answered(JSONDocument)
    /// HTTP 200 or 202 without a body: Apple took what was sent.
    case accepted
    /// Apple does not accept the bearer token.
    case unauthorized
    /// An error by Apple's code.
    case error(code: Int, ServerErrorMeaning)
    /// No answer that means anything; one sentence, and the network's own words for the log.
    case failed(String, detail: String?)
}

/// One request of the Server API.
struct ServerCall: Sendable {
    let method: HTTPMethod
    /// The path with its query, from `/inApps`.
    let path: String
    /// The body; nil for none.
    var body: [UInt8]?

    /// Returns the call for the status of all subscriptions of a customer.
    static func statuses(of transactionID: String) -> ServerCall {
        ServerCall(method: .GET, path: "/inApps/v1/subscriptions/\(encoded(transactionID))")
    }

    /// Returns the call for a page of a customer's history, from a revision on, in the order of modification.
    static func history(of transactionID: String, from revision: String?) -> ServerCall {
        let place = revision.map { "&revision=\(encoded($0))" } ?? ""
        return ServerCall(method: .GET, path: "/inApps/v2/history/\(encoded(transactionID))?sort=ASCENDING\(place)")
    }

    /// Returns the call for one transaction.
    static func transaction(_ transactionID: String) -> ServerCall {
        ServerCall(method: .GET, path: "/inApps/v1/transactions/\(encoded(transactionID))")
    }

    /// Encodes everything but the unreserved characters of RFC 3986.
    static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}

/// Makes calls of the Server API with a fresh token where one is needed.
struct ServerCaller: Sendable {
    let options: ServerAPIOptions
    let http: HTTPCall
    let tokens: ServerTokens

    /// Makes a call; a token that Apple does not accept is renewed once. Returns the number of requests too.
    func call(
        _ call: ServerCall, of key: ServerKey, in environment: Endpoint, until end: ContinuousClock.Instant
    ) async -> (reply: ServerReply, result: CallResult, calls: Int) {
        for attempt in 1... {
            let token: String
            do {
                token = try tokens.token(of: key, isFresh: attempt > 1)
            } catch {
                return (
                    .failed("The app's server key cannot sign; store it again.", detail: nil), CallResult(), attempt - 1
                )
            }
            let result = await http.call(
                options.url(of: environment, call.path), call.method, headers: Self.headers(token, call),
                sending: call.body.map { ByteBuffer(bytes: $0) }, until: end)
            let reply = ServerReply(result)
            switch reply {
            case .unauthorized where attempt == 1 && ContinuousClock.now < end: continue
            case .unauthorized, .failed: break
            case .answered, .accepted, .error: tokens.accept(key, in: environment)
            }
            return (reply, result, attempt)
        }
        return (.failed(CallFailure.noTimeLeft, detail: nil), CallResult(), 0)
    }

    /// Waits until `turn` lets a call be made; returns false where that is later than `end`.
    static func awaits(
        _ turn: @Sendable () async -> Double?, until end: ContinuousClock.Instant
    ) async -> Bool {
        while let seconds = await turn() {
            let wait = Duration.seconds(max(seconds, 0.01))
            guard ContinuousClock.now + wait < end, !Task.isCancelled else { return false }
            // The sleep fails only when the caller is cancelled, which the next round sees.
            try? await Task.sleep(for: wait)
        }
        return true
    }

    /// Why a call was not made whose turn comes too late.
    static let noTurn = "The app's budget of calls to the Server API is used up."

    private static func headers(_ token: String, _ call: ServerCall) -> HTTPHeaders {
        var headers: HTTPHeaders = [
            "authorization": "Bearer \(token)", "accept": "application/json", "user-agent": "perennial",
        ]
        if call.body != nil { headers.add(name: "content-type", value: "application/json") }
        return headers
    }
}

extension ServerReply {
    static let noObject = "The store answered HTTP 200 without a JSON object; ask again later."

    fileprivate init(_ result: CallResult) {
        guard let status = result.httpStatus else {
            self = .failed(result.failure ?? "The store gave no answer.", detail: result.failureDetail)
            return
        }
        if status == 202 || status == 200 && result.body.isEmpty && result.failure == nil {
            self = .accepted
            return
        }
        let document = try? JSONReader.read(result.body)
        let object = document.flatMap { $0.nodes[JSONDocument.root].isObject ? $0 : nil }
        if status == 200 {
            guard result.failure == nil, let object else {
                self = .failed(result.failure ?? Self.noObject, detail: result.failureDetail)
                return
            }
            self = .answered(object)
            return
        }
        if status == 401 {
            self = .unauthorized
            return
        }
        let code = object.flatMap { object in
            object.members(JSONDocument.root)["errorCode"].flatMap(object.digits).flatMap { Int(exactly: $0) }
        }
        if let code, let meaning = ServerErrorMeaning(code) {
            self = .error(code: code, meaning)
        } else if status == 429 {
            self = .error(code: 4_290_000, .tooMany)
        } else {
            self = .failed(result.failure ?? "The store answered HTTP \(status).", detail: result.failureDetail)
        }
    }
}
