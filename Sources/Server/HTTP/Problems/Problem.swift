import Hummingbird

/// An error in the form of RFC 9457: `application/problem+json`.
struct Problem: Error, Sendable {
    /// The kind of error, which decides the HTTP status.
    let kind: Kind
    /// One sentence that says what failed, where, and what to do. It never contains a secret, a receipt or an internal
    /// detail.
    let detail: String
    /// Headers of the response.
    var headers: HTTPFields = [:]
    /// Members of the body beyond those of the RFC.
    var members: [String: JSONValue] = [:]

    /// The longest detail, in characters. A longer one is cut, because it only repeats the caller's own input.
    private static let detailCharactersMax = 600

    /// Creates a problem with its detail.
    init(_ kind: Kind, _ detail: String, headers: HTTPFields = [:], members: [String: JSONValue] = [:]) {
        self.kind = kind
        let isLong = detail.unicodeScalars.count > Self.detailCharactersMax
        self.detail = isLong ? String(detail.unicodeScalars.prefix(Self.detailCharactersMax)) + "…" : detail
        self.headers = headers
        self.members = members
    }

    /// The media type of every problem's body (RFC 9457, section 3).
    static let mediaType = "application/problem+json"

    /// Returns the problem as the response to the request with the given id.
    func response(requestID: String) -> Response {
        var fields = headers
        fields[.contentType] = Self.mediaType
        return Response(json(requestID: requestID), status: kind.status, headers: fields)
    }

    /// Returns the problem as the JSON body of the response to the request with the given id.
    func json(requestID: String) -> JSONValue {
        var body: [String: JSONValue] = [
            "type": .string("urn:perennial:problem:\(kind.rawValue)"),
            "title": .string(kind.title),
            "status": .integer(Int64(kind.status.code)),
            "detail": .string(detail),
            "request_id": .string(requestID),
        ]
        body.merge(members) { own, _ in own }
        return .object(body)
    }
}

extension Problem {
    /// Returns the problem for a bundle id that no app has.
    static func unknownApp(_ bundleID: String) -> Problem {
        Problem(.unknownApp, "No app has the bundle id \(bundleID); register it with `perennial app add`.")
    }

    /// Returns the problem for a dependency that is temporarily unavailable. `Retry-After` is at least one second.
    static func unavailable(_ detail: String, retryAfterSeconds: Int) -> Problem {
        Problem(.unavailable, detail, headers: [.retryAfter: String(max(1, retryAfterSeconds))])
    }
}

extension Problem {
    /// The kinds of problem. The raw value ends the problem's `type`, which programs may compare.
    enum Kind: String, CaseIterable, Sendable {
        case invalid
        case unauthenticated
        case forbidden
        case notFound = "not-found"
        case unknownApp = "unknown-app"
        case methodNotAllowed = "method-not-allowed"
        case timedOut = "timed-out"
        case conflict
        case otherFeed = "other-feed"
        case proofRefused = "proof-refused"
        case tooLarge = "too-large"
        case notAReceipt = "not-a-receipt"
        case receiptRejected = "receipt-rejected"
        case unsupportedMedia = "unsupported-media"
        case tooMany = "too-many"
        case failed
        case unavailable

        /// The HTTP status.
        var status: HTTPResponse.Status {
            switch self {
            case .invalid: .badRequest
            case .unauthenticated: .unauthorized
            case .forbidden, .proofRefused: .forbidden
            case .notFound, .unknownApp: .notFound
            case .methodNotAllowed: .methodNotAllowed
            case .timedOut: .requestTimeout
            case .conflict, .otherFeed: .conflict
            case .tooLarge: .contentTooLarge
            case .notAReceipt, .receiptRejected: .unprocessableContent
            case .unsupportedMedia: .unsupportedMediaType
            case .tooMany: .tooManyRequests
            case .failed: .internalServerError
            case .unavailable: .serviceUnavailable
            }
        }

        /// A short title that is the same for every occurrence.
        var title: String {
            switch self {
            case .invalid: "The request cannot be used"
            case .unauthenticated: "An API key is needed"
            case .forbidden: "The API key may not do this"
            case .notFound: "There is nothing here"
            case .unknownApp: "The app is not registered"
            case .methodNotAllowed: "The method is not answered here"
            case .timedOut: "The request took too long to arrive"
            case .conflict: "It exists already"
            case .proofRefused: "The proof is not of this order"
            case .otherFeed: "The cursor is of another feed"
            case .tooLarge: "The body is too large"
            case .notAReceipt: "This is not a receipt"
            case .receiptRejected: "Apple does not vouch for the receipt"
            case .unsupportedMedia: "The body is not JSON"
            case .tooMany: "Too many requests"
            case .failed: "Something went wrong here"
            case .unavailable: "Try again later"
            }
        }
    }
}
