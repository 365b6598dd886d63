import Foundation

/// Why a call brought no answer, and what to do about it.
///
/// An error never means "no": a customer whose entitlements cannot be read may well have paid.
public struct PerennialError: Error, Sendable, CustomStringConvertible {
    /// What went wrong.
    public enum Cause: Sendable, Hashable {
        /// The server does not answer: the network is away, or the time is over.
        case unreachable
        /// The server refuses the request, or cannot carry it out.
        case problem(Problem)
        /// The answer is not Perennial's.
        case unreadable
        /// The request cannot be sent as it is.
        case invalid
        /// The queue is full.
        case full
        /// The queue's storage failed.
        case storage
    }

    /// What to do.
    public enum Disposition: Sendable, Hashable {
        /// Send it again, at the earliest after these seconds where the server says so.
        case retry(afterSeconds: Double?)
        /// Do not send it again: the same request gets the same answer.
        case reject
        /// A person has to look: the key, the address, the app's registration or the storage is wrong. Keep what you
        /// have; it succeeds when that is repaired.
        case alarm
    }

    /// What went wrong.
    public let cause: Cause
    /// What to do.
    public let disposition: Disposition
    /// One sentence for the log. It holds no key and no receipt.
    public let description: String

    init(_ cause: Cause, _ description: String) {
        self.cause = cause
        self.description = description
        disposition =
            switch cause {
            case .unreachable, .full: .retry(afterSeconds: nil)
            case .problem(let problem): problem.disposition
            case .unreadable, .storage: .alarm
            case .invalid: .reject
            }
    }

    init(_ problem: Problem) {
        let id = problem.requestID.map { " (request \($0))" } ?? ""
        self.init(.problem(problem), problem.detail + id)
    }

    /// The server's problem, where it is one.
    public var problem: Problem? {
        if case .problem(let problem) = cause { problem } else { nil }
    }
}

extension Problem {
    /// What to do. A refusal that is not Perennial's own word, such as a proxy's page, is never final.
    var disposition: PerennialError.Disposition {
        switch (status, kind) {
        case (408, _), (429, _), (500..., _): .retry(afterSeconds: retryAfterSeconds)
        case (_, .proofRefused): .reject
        case (401, _), (403, _), (405, _), (_, .unknownApp), (_, nil): .alarm
        case (400..<500, _): .reject
        case (_, _): .alarm
        }
    }
}

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
