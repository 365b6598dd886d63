import Foundation

/// What a server says of a request that it did not carry out (RFC 9457).
public struct Problem: Sendable, Hashable {
    /// The kind of problem: the last word of its `type`. A newer server may have further kinds; these keep their text.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// The word.
        public let rawValue: String
        /// Makes a kind of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A field of the request is wrong.
        public static let invalid = Kind(rawValue: "invalid")
        /// The API key is missing, unknown or revoked.
        public static let unauthenticated = Kind(rawValue: "unauthenticated")
        /// The API key may not do this.
        public static let forbidden = Kind(rawValue: "forbidden")
        /// There is nothing of this id.
        public static let notFound = Kind(rawValue: "not-found")
        /// The app is not registered at the server.
        public static let unknownApp = Kind(rawValue: "unknown-app")
        /// The Idempotency-Key placed another order.
        public static let conflict = Kind(rawValue: "conflict")
        /// There is no such order, or the proof is not made with its key.
        public static let proofRefused = Kind(rawValue: "proof-refused")
        /// The body is larger than the server reads.
        public static let tooLarge = Kind(rawValue: "too-large")
        /// The text cannot be a receipt.
        public static let notAReceipt = Kind(rawValue: "not-a-receipt")
        /// Apple does not vouch for the receipt.
        public static let receiptRejected = Kind(rawValue: "receipt-rejected")
        /// There were too many requests.
        public static let tooMany = Kind(rawValue: "too-many")
        /// The server failed.
        public static let failed = Kind(rawValue: "failed")
        /// The server cannot answer at the moment.
        public static let unavailable = Kind(rawValue: "unavailable")
    }

    /// The kind; nil when the answer is not Perennial's, such as a proxy's page.
    public let kind: Kind?
    /// The HTTP status.
    public let status: Int
    /// One sentence that says what failed and what to do.
    public let detail: String
    /// The id of the request in the server's log.
    public let requestID: String?
    /// `Retry-After`: seconds to wait before the request is sent again.
    public let retryAfterSeconds: Double?

    private static let family = "urn:perennial:problem:"

    private struct Body: Decodable {
        let type: String?
        let detail: String?
        let requestID: String?

        enum CodingKeys: String, CodingKey {
            case type, detail
            case requestID = "request_id"
        }
    }

    init(_ reply: Reply) {
        // A proxy's page is no JSON, and says nothing about the request.
        let body = try? JSONText.decoder().decode(Body.self, from: reply.body)
        let type = body?.type.flatMap { $0.hasPrefix(Self.family) ? String($0.dropFirst(Self.family.count)) : nil }
        kind = type.map(Kind.init(rawValue:))
        status = reply.status
        detail = body?.detail ?? "HTTP status \(reply.status) without an explanation."
        requestID = body?.requestID ?? reply.header("X-Request-Id")
        retryAfterSeconds = reply.header("Retry-After").flatMap(Double.init).map { max(0, $0) }
    }
}
