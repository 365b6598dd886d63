import Postgres
package import Subscriptions

/// A manual decision: its author and its reason.
package struct ManualDecision: Sendable, Hashable {
    /// The maximum length of the author's name, in characters.
    package static let actorCharactersMax = 255
    /// The maximum length of a reason, in characters.
    package static let reasonCharactersMax = 1000

    /// The author of the decision.
    package let actor: String
    /// The reason, in words for later readers.
    package let reason: String

    /// Creates a decision; throws `invalid` when the author or the reason is missing, blank, too long or contains NUL.
    package init(by actor: String, because reason: String) throws(LedgerError) {
        try Self.requireWords(actor, "A name of who decides", charactersMax: Self.actorCharactersMax)
        try Self.requireWords(reason, "A reason", charactersMax: Self.reasonCharactersMax)
        self.actor = actor
        self.reason = reason
    }

    /// Throws `invalid` unless the text has 1 to `charactersMax` characters, more than blanks and no NUL.
    static func requireWords(_ text: String, _ what: String, charactersMax: Int) throws(LedgerError) {
        try require(text, what, charactersMax: charactersMax)
        guard !text.allSatisfy(\.isWhitespace) else { throw LedgerError(.invalid, "\(what) is more than blanks.") }
    }

    /// Throws `invalid` unless the text has 1 to `charactersMax` characters and no NUL.
    static func require(_ text: String, _ what: String, charactersMax: Int) throws(LedgerError) {
        guard !text.unicodeScalars.contains("\0") else { throw LedgerError(.invalid, "\(what) cannot hold a NUL.") }
        let count = text.unicodeScalars.count
        guard (1...charactersMax).contains(count) else {
            throw LedgerError(.invalid, "\(what) has 1 to \(charactersMax) characters; this one has \(count).")
        }
    }
}

/// A manual grant of an entitlement, for support, testers and compensation; independent of Apple and never counted in
/// revenue.
package struct ManualGrant: Sendable, Hashable {
    /// The maximum length of an entitlement's name, in characters.
    package static let entitlementCharactersMax = 255

    /// The entitlement.
    package let entitlement: String
    /// The start of the grant.
    package let since: Instant
    /// The end of the grant; nil if it has none.
    package let until: Instant?
    /// The author of the grant.
    package let givenBy: String
    /// The reason for the grant.
    package let reason: String
    /// The author of an early end; nil when there was none.
    package let endedBy: String?
    /// The reason for the early end.
    package let endReason: String?

    /// Throws `invalid` unless the text can be an entitlement's name.
    package static func requireEntitlement(_ name: String) throws(LedgerError) {
        try ManualDecision.require(name, "The name of an entitlement", charactersMax: entitlementCharactersMax)
    }
}

extension ManualGrant {
    init(row: Row) throws {
        entitlement = try row.text("entitlement")
        since = try row.instant("since")
        until = try row.instantIfPresent("until")
        givenBy = try row.text("given_by")
        reason = try row.text("reason")
        endedBy = try row.textIfPresent("ended_by")
        endReason = try row.textIfPresent("end_reason")
    }
}
