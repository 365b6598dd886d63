import Postgres
package import Subscriptions

/// What a person asks Apple to change.
package struct WantedSupportCall: Sendable, Hashable {
    /// A kind of support call.
    package enum Kind: String, Sendable, CaseIterable {
        /// One subscription is extended.
        case extend
        /// All subscriptions of a product are extended.
        case extendAll = "extend_all"
        /// What was used of a purchase.
        case consumption
        /// The account token of a purchase.
        case accountToken = "account_token"
    }

    /// What kind it is.
    package let kind: Kind
    /// Where.
    package let environment: StoreEnvironment
    /// The transaction or product that it is about.
    package let subject: String
    /// What is asked, as JSON. The same text about the same subject is the same request.
    package let request: String?

    /// Creates a call that is not made yet.
    package init(_ kind: Kind, in environment: StoreEnvironment, about subject: String, asking request: String?) {
        self.kind = kind
        self.environment = environment
        self.subject = subject
        self.request = request
    }
}

/// A stored support call.
package struct SupportCall: Sendable, Hashable {
    /// What came of a call.
    package enum Outcome: String, Sendable, CaseIterable {
        /// No answer is known yet.
        case sent
        /// Apple did it.
        case done
        /// Apple did not do it.
        case refused
        /// Nothing is known of it.
        case failed
        /// The customer did not consent, so nothing was sent.
        case withheld
    }

    /// The identifier of the request, a UUID.
    package let requestID: String
    /// What came of it.
    package let outcome: Outcome
    /// Why it was refused or failed.
    package let reason: String?
    /// Apple's error code.
    package let code: Int32?
    /// When an extended subscription ends now.
    package let extendedUntil: Instant?
    /// How often it was sent.
    package let attempts: Int32
    /// When its outcome was stored.
    package let answeredAt: Instant?
}

extension SupportCall {
    init(row: Row) throws {
        requestID = try row.text("request_id")
        outcome = try row.word("outcome")
        reason = try row.textIfPresent("reason")
        code = try row.int4IfPresent("code")
        extendedUntil = try row.instantIfPresent("extended_until")
        attempts = try row.int4("attempts")
        answeredAt = try row.instantIfPresent("answered_at")
    }
}
