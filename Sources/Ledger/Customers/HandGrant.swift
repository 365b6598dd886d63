import Postgres
import Subscriptions

/// A right given by hand: for support, testers and amends, beside what Apple says and never in figures of money.
public struct HandGrant: Sendable, Hashable {
    /// The longest name of a right, in characters.
    public static let entitlementCharactersMax = 255

    /// The right.
    public let entitlement: String
    /// From when the customer has it.
    public let since: Instant
    /// When it ends; nil: without an end.
    public let until: Instant?
    /// Who gave it.
    public let givenBy: String
    /// Why.
    public let reason: String
    /// Who ended it before its time; nil when nobody did.
    public let endedBy: String?
    /// Why they did.
    public let endReason: String?

    /// Throws `invalid` unless the text can be the name of a right.
    public static func requireEntitlement(_ name: String) throws(LedgerError) {
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
