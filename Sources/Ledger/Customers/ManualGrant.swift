import Postgres
import Subscriptions

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
