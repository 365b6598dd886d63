import Foundation
import JSON
import NIOCore
import NIOHTTP1
package import Subscriptions

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
        _ call: ServerCall, of key: ServerKey, in environment: StoreEnvironment, until end: ContinuousClock.Instant
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
        let object = JSONDocument(object: result.body)
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
        let code = object.flatMap { JSONObject($0)?.digits("errorCode") }.flatMap { Int(exactly: $0) }
        if let code, let meaning = ServerErrorMeaning(code) {
            self = .error(code: code, meaning)
        } else if status == 429 {
            self = .error(code: 4_290_000, .tooMany)
        } else {
            self = .failed(result.failure ?? "The store answered HTTP \(status).", detail: result.failureDetail)
        }
    }
}

/// The App Store Server API as Perennial sees it: checks, and the calls of support. A struct with closures, as
/// ``AppStoreClient`` is.
package struct ServerAPIClient: Sendable {
    /// Asks Apple about the customer of a transaction. Never throws: an outage is an answer too.
    package var read: @Sendable (ServerRequest) async -> AppStoreAnswer
    /// Makes one support call. Never throws either.
    package var support: @Sendable (SupportRequest) async -> SupportAnswer

    /// Creates a client that answers checks with `read`, and support calls with `support` where there is one.
    package init(
        support: @escaping @Sendable (SupportRequest) async -> SupportAnswer = { _ in
            SupportAnswer(outcome: .failed("This process does not ask the Server API.", code: nil))
        },
        read: @escaping @Sendable (ServerRequest) async -> AppStoreAnswer
    ) {
        self.read = read
        self.support = support
    }

    /// A client of a process that asks no Server API.
    package static let none = ServerAPIClient { request in
        AppStoreAnswer(
            environment: request.askFirst,
            server: .noAnswer("This process does not ask the Server API.", code: nil), httpStatus: nil, calls: 0)
    }
}

/// The endpoints that a check asks, in this order. Apple limits each on its own.
package enum ServerEndpoint: Sendable, Hashable {
    /// The status of all subscriptions of a customer.
    case statuses
    /// The history of a customer's transactions.
    case history
    /// One transaction, where both do not list the id that was asked about.
    case transaction
}

/// A request to Apple about the customer of one transaction.
package struct ServerRequest: Sendable {
    /// The key that signs the requests.
    package var key: ServerKey
    /// Apple's number of the app; texts of production that name another one are of another app.
    package var appleAppID: Int64?
    /// Any transaction id of the customer in this app.
    package var transactionID: String
    /// The signed text of that transaction, where the device sent one.
    package var signedText: [UInt8]?
    /// The revision after which the history is read; nil: from its start.
    package var revision: String?
    /// The environment to ask first: the one remembered for this receipt, else production.
    package var askFirst: StoreEnvironment
    /// Whether nothing of this receipt was verified before: the answer must hold the id, or the purchase that it
    /// names under another one, and the other environment may know it.
    package var isFirstSight: Bool
    /// Whether sandbox purchases are accepted. If false, the sandbox is never asked.
    package var sandboxAllowed: Bool
    /// Takes a call of an endpoint from its budget: returns nil when it may be made, else the seconds to wait before
    /// another question.
    package var turn: @Sendable (StoreEnvironment, ServerEndpoint) async -> Double?

    /// Creates a request; the app's budget is `turn`.
    package init(
        key: ServerKey, appleAppID: Int64? = nil, transactionID: String, signedText: [UInt8]? = nil,
        revision: String? = nil,
        askFirst: StoreEnvironment = .production, isFirstSight: Bool = true, sandboxAllowed: Bool = true,
        turn: @escaping @Sendable (StoreEnvironment, ServerEndpoint) async -> Double? = { _, _ in nil }
    ) {
        self.key = key
        self.appleAppID = appleAppID
        self.transactionID = transactionID
        self.signedText = signedText
        self.revision = revision
        self.askFirst = askFirst
        self.isFirstSight = isFirstSight
        self.sandboxAllowed = sandboxAllowed
        self.turn = turn
    }
}

/// What an error code of the Server API means for a check.
///
/// Apple: "App Store Server API", error codes.
enum ServerErrorMeaning: Sendable, Hashable {
    /// This environment does not know the transaction. The other one may.
    case unknownHere
    /// The customer's Apple Account is not known any more.
    case accountGone
    /// Apple has a temporary problem.
    case temporary
    /// Too many requests.
    case tooMany
    /// The app is not known, or its number is wrong: no transaction of it can be asked about.
    case appRefused
    /// Apple does not know the revision, or the token of a page, any more.
    case placeLost
    /// The id can never be asked about.
    case idRefused
    /// The request has a fault: ours.
    case ourFault

    /// Determines the meaning of a code; nil for a code that is none of a failed check.
    init?(_ code: Int) {
        switch code {
        case 4_040_005, 4_040_010: self = .unknownHere
        case 4_040_001: self = .accountGone
        case 4_040_002, 4_040_004, 4_040_006, 5_000_000..<6_000_000: self = .temporary
        case 4_290_000: self = .tooMany
        case 4_040_003, 4_000_002: self = .appRefused
        case 4_000_005, 4_000_014, 4_000_017: self = .placeLost
        case 4_000_006, 4_000_008, 4_000_048, 4_000_187: self = .idRefused
        case 4_000_000..<4_010_000, 4_030_000..<4_050_000: self = .ourFault
        default: return nil
        }
    }
}
