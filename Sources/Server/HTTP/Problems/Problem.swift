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

    /// Returns the body of that response.
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
