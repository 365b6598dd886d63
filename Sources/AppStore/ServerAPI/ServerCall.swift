import Foundation
import JSON
import NIOCore
import NIOHTTP1
package import Subscriptions

/// What one call of the Server API brought.
enum ServerReply: Sendable {
    /// HTTP 200 and a JSON object.
    case answered(JSONDocument)
    /// HTTP 200 without a body, or 202: Apple took what was sent.
    case accepted
    /// Apple does not accept the bearer token.
    case unauthorized
    case error(code: Int, ServerErrorMeaning)
    /// No answer that means anything; one sentence.
    case failed(String)
}

/// One request of the Server API.
struct ServerCall: Sendable {
    var method = HTTPMethod.GET
    /// The path with its query, after `/inApps/`.
    let path: String
    var body: [UInt8]?

    /// Returns the call for the status of all subscriptions of a customer.
    static func statuses(of id: String) -> ServerCall { ServerCall(path: "v1/subscriptions/\(encoded(id))") }

    /// Returns the call for a page of a customer's history, from a revision on, in the order of modification.
    static func history(of id: String, from revision: String?) -> ServerCall {
        let place = revision.map { "&revision=\(encoded($0))" } ?? ""
        return ServerCall(path: "v2/history/\(encoded(id))?sort=ASCENDING\(place)")
    }

    static func transaction(_ id: String) -> ServerCall { ServerCall(path: "v1/transactions/\(encoded(id))") }

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
        var calls = 0
        while true {
            guard let token = try? tokens.token(of: key, isFresh: calls > 0) else {
                return (.failed("The app's server key cannot sign; store it again."), CallResult(), calls)
            }
            calls += 1
            let result = await http.call(
                options.url(of: environment, "/inApps/\(call.path)"), call.method, headers: Self.headers(token, call),
                sending: call.body.map { ByteBuffer(bytes: $0) }, until: end)
            let reply = ServerReply(result)
            switch reply {
            case .unauthorized where calls == 1 && ContinuousClock.now < end: continue
            case .unauthorized, .failed: break
            case .answered, .accepted, .error: tokens.noteAccepted(key, in: environment)
            }
            return (reply, result, calls)
        }
    }

    /// Waits until `turn`, the budget that a caller of this target lends, lets a call be made; returns false where that is
    /// later than `end`.
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
        switch (result.httpStatus, result.failure) {
        case (nil, let failure): self = .failed(failure ?? "The store gave no answer.")
        case (202, _): self = .accepted
        case (200, let failure?): self = .failed(failure)
        case (200, nil) where result.body.isEmpty: self = .accepted
        case (200, nil): self = JSONDocument(object: result.body).map { .answered($0) } ?? .failed(Self.noObject)
        case (401, _): self = .unauthorized
        case (let status?, let failure):
            let code = JSONObject(result.body)?.digits("errorCode").flatMap { Int(exactly: $0) }
            if let code, let meaning = ServerErrorMeaning(code) {
                self = .error(code: code, meaning)
            } else if status == 429 {
                self = .error(code: 4_290_000, .tooMany)
            } else {
                self = .failed(failure ?? "The store answered HTTP \(status).")
            }
        }
    }
}

/// The App Store Server API as Perennial sees it: checks, and the calls of support. Tests pass their own.
package struct ServerAPIClient: Sendable {
    /// Makes one support call. Never throws: an outage is an answer too.
    package var support: @Sendable (SupportRequest) async -> SupportAnswer = { _ in
        SupportAnswer(outcome: .failed(isAbsent, code: nil))
    }
    /// Asks Apple about the customer of a transaction. Never throws either.
    package var read: @Sendable (ServerRequest) async -> AppStoreAnswer

    /// A client of a process that asks no Server API.
    package static let none = ServerAPIClient { request in
        AppStoreAnswer(environment: request.askFirst, server: .noAnswer(isAbsent, code: nil), httpStatus: nil, calls: 0)
    }

    private static let isAbsent = "This process does not ask the Server API."
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
    /// Takes a call of an endpoint from its budget: returns nil when it may be made, else the seconds to wait.
    package var turn: @Sendable (StoreEnvironment, ServerEndpoint) async -> Double?

    /// Creates a request; the app's budget is `turn`.
    package init(
        key: ServerKey, appleAppID: Int64? = nil, transactionID: String, signedText: [UInt8]? = nil,
        revision: String? = nil, askFirst: StoreEnvironment = .production, isFirstSight: Bool = true,
        sandboxAllowed: Bool = true,
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

/// What an error code of the Server API means for a check (Apple: "App Store Server API", error codes).
enum ServerErrorMeaning: Sendable, Hashable {
    /// This environment does not know the transaction. The other one may.
    case unknownHere
    /// The customer's Apple Account is not known any more.
    case accountGone
    case temporary
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
