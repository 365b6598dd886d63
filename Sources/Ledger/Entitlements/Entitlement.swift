import Postgres
package import Subscriptions

/// One entitlement of one customer: whether it is granted, until when, why, and how fresh the answer is.
package struct Entitlement: Sendable, Hashable {
    /// The entitlement's name.
    package let name: String
    /// Whether the customer has it.
    package let granted: Bool
    /// When it ends unless something changes; nil when it does not end or is not granted.
    package let until: Instant?
    /// The product that grants or granted it; nil for a manual grant.
    package let productID: ProductID?
    /// The state of the subscription behind it.
    package let state: String?
    /// The reason for that state.
    package let reason: String?
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The basis of the answer: `verified`, Apple's answer; `provisional`, the operator's word until Apple is asked; or
    /// `by_hand`, a person's decision.
    package let basis: String
    /// Apple's clock of the evidence; nil for a provisional entitlement and a manual grant, and where the newest answer
    /// is later than the instant asked about.
    package let asOf: Instant?
    /// When the last verified answer came; nil where `asOf` is nil.
    package let checkedAt: Instant?
    /// Apple's expiry of the last period, where a subscription does not grant the entitlement.
    package let expiresAt: Instant?
    /// When it ended, where it is not granted.
    package let endedAt: Instant?
}

extension Entitlement {
    /// Reads a row of `entitlements`.
    init(row: Row) throws {
        name = try row.text("entitlement")
        granted = try row.bool("granted")
        until = try row.instantIfPresent("until")
        productID = try row.textIfPresent("product_id").map { ProductID($0) }
        state = try row.textIfPresent("state")
        reason = try row.textIfPresent("reason")
        environment = try row.word("environment")
        basis = try row.text("basis")
        asOf = try row.instantIfPresent("as_of")
        checkedAt = try row.instantIfPresent("checked_at")
        expiresAt = try row.instantIfPresent("expires_at")
        endedAt = try row.instantIfPresent("ended_at")
    }

    /// Creates the entitlement that a source gives or gave.
    init(from source: EntitlementSource) {
        let span = source.span
        name = span.entitlement
        granted = span.granted
        until = span.until.map(Instant.init(microseconds:))
        productID = span.productID.map { ProductID($0) }
        state = span.state
        reason = span.reason
        environment = span.environment
        basis = span.basis
        asOf = source.clocks.map { Instant(microseconds: $0.asOf) }
        checkedAt = source.clocks.map { Instant(microseconds: $0.checkedAt) }
        expiresAt = span.expiresAt.map(Instant.init(microseconds:))
        endedAt = span.endedAt.map(Instant.init(microseconds:))
    }
}
