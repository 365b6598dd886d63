import Postgres
import Subscriptions

/// A right given by hand: for support, testers and amends, beside what Apple says and never in figures of money.
package struct HandGrant: Sendable, Hashable {
    /// The longest name of a right, in characters.
    package static let entitlementCharactersMax = 255

    /// The right.
    package let entitlement: String
    /// From when the customer has it.
    package let since: Instant
    /// When it ends; nil: without an end.
    package let until: Instant?
    /// Who gave it.
    package let givenBy: String
    /// Why.
    package let reason: String
    /// Who ended it before its time; nil when nobody did.
    package let endedBy: String?
    /// Why they did.
    package let endReason: String?

    /// Throws `invalid` unless the text can be the name of a right.
    package static func requireEntitlement(_ name: String) throws(LedgerError) {
        try HandDecision.require(name, "The name of an entitlement", charactersMax: entitlementCharactersMax)
    }
}

extension HandGrant {
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
