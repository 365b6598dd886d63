import Foundation

extension PerennialServer {
    /// The most customers of one batch.
    public static let batchCustomersMax = 1_000

    /// What a customer may use now. A customer whom the server does not know has no entitlements.
    ///
    /// Needs a key of scope `read`. Nothing is remembered: ``EntitlementCache`` does that.
    public func entitlements(of customer: String) async throws -> CustomerEntitlements {
        try await lookup(customer, unless: nil).answer
    }

    /// What many customers may use now, in the order of the question; the same customer may be named twice.
    ///
    /// Needs a key of scope `read`. Throws `invalid` for more than ``batchCustomersMax`` customers; none get an empty
    /// answer without a call.
    public func entitlements(ofEach customers: [String]) async throws -> [CustomerEntitlements] {
        guard !customers.isEmpty else { return [] }
        guard customers.count <= Self.batchCustomersMax else {
            throw PerennialError(.invalid, "A batch has at most \(Self.batchCustomersMax) customers.")
        }
        let call = Call(
            method: "POST", path: try appPath("entitlements:batch"),
            body: try JSONText.encode(["customers": customers]))
        let batch = try await answer(BatchAnswer.self, to: call)
        guard batch.customers.map(\.customer) == customers else {
            throw PerennialError(.unreadable, "The answer to a batch names other customers than the question.")
        }
        return batch.customers.map { $0.entitlements(at: batch.at) }
    }

    /// One lookup, or that it would say the same as the answer with this tag.
    func lookup(_ customer: String, unless kept: Looked?) async throws -> Looked {
        let path = try appPath("customers/\(try Call.part(customer))/entitlements")
        let tag = kept?.tag
        let reply = try await reply(to: Call(path: path, headers: tag.map { ["If-None-Match": $0] } ?? [:]))
        if reply.status == 304, let kept { return kept }
        guard reply.status == 200 else { throw reply.failure }
        let answer = try reply.decoded(as: LookupAnswer.self)
        guard let at = answer.at else {
            throw PerennialError(.unreadable, "The answer to a lookup does not say of when it is.")
        }
        return Looked(answer: answer.entitlements(at: at), tag: reply.header("ETag"))
    }
}

/// An answer with the tag of its meaning.
struct Looked: Sendable {
    let answer: CustomerEntitlements
    let tag: String?
}

private struct LookupAnswer: Decodable {
    let customer: String
    let at: Date?
    let stale: Bool
    let maxAgeSeconds: Int?
    let entitlements: [Entitlement]

    enum CodingKeys: String, CodingKey {
        case customer, at, stale, entitlements
        case maxAgeSeconds = "max_age_s"
    }

    func entitlements(at instant: Date) -> CustomerEntitlements {
        CustomerEntitlements(
            customer: customer, at: instant, isStale: stale, maxAgeSeconds: maxAgeSeconds, entitlements: entitlements)
    }
}

private struct BatchAnswer: Decodable {
    let at: Date
    let customers: [LookupAnswer]
}
