import Hummingbird

/// An error as RFC 9457 tells it: `application/problem+json`.
struct Problem: Error, Sendable {
    /// What went wrong; decides the status.
    let kind: Kind
    /// One sentence: what, where, what to do. Never a secret, a receipt or an internal.
    let detail: String
    /// Headers the answer carries.
    var headers: HTTPFields = [:]
    /// Members beside those of the RFC.
    var members: [String: JSONValue] = [:]

    /// The longest sentence, in characters; more is what a caller sent, who knows it.
    private static let detailCharactersMax = 600

    /// A problem with its sentence.
    init(_ kind: Kind, _ detail: String, headers: HTTPFields = [:], members: [String: JSONValue] = [:]) {
        self.kind = kind
        let isLong = detail.unicodeScalars.count > Self.detailCharactersMax
        self.detail = isLong ? String(detail.unicodeScalars.prefix(Self.detailCharactersMax)) + "…" : detail
        self.headers = headers
        self.members = members
    }

    /// What the body of every problem is (RFC 9457, section 3).
    static let mediaType = "application/problem+json"

    /// The problem's answer to the request with the given id.
    func response(requestID: String) -> Response {
        var fields = headers
        fields[.contentType] = Self.mediaType
        return Response(json(requestID: requestID), status: kind.status, headers: fields)
    }

    /// The body of that answer.
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
    /// No app has this bundle id.
    static func unknownApp(_ bundleID: String) -> Problem {
        Problem(.unknownApp, "No app has the bundle id \(bundleID); register it with `perennial app add`.")
    }

    /// Something below is away for a while.
    static func unavailable(_ detail: String, retryAfterSeconds: Int) -> Problem {
        Problem(.unavailable, detail, headers: [.retryAfter: String(max(1, retryAfterSeconds))])
    }
}
