/// The ledger's state of one subscription. All but `version`, `facts`, `leeway` and `suspectedShrink` is derived.
package struct SubscriptionState: Sendable, Hashable {
    /// The facts Apple has stated.
    package let facts: SubscriptionFacts
    /// The meaning of the facts over time.
    package let timeline: Timeline
    /// The number of changes, from 1.
    package let version: Int64
    /// The leeway used to make the timeline.
    package let leeway: Delay
    /// The end of access, and whether it waits for an answer.
    package let outageAllowance: OutageAllowance
    /// Apple's `auto_renew_status`; nil if unknown.
    package let willRenew: Bool?
    /// The product that will renew; nil unless `willRenew` is true.
    package let renewsToProductID: ProductID?
    /// The earliest purchase of its periods.
    package let startedAt: Instant
    /// Apple's expiry of the last period charged, as of `facts.asOf`.
    package let expiresAt: Instant
    /// The start of that period.
    package let headStartsAt: Instant
    /// Set if a newer answer moved the head's expiry back without a reason; waits for a second equal answer.
    package let suspectedShrink: SuspectedShrink?

    /// The number of distinct known periods, including refunded and replaced ones.
    package var periods: Int { facts.periods.count }
    /// Apple's clock at the newest verified answer.
    package var asOf: Instant { facts.asOf }

    /// Derives the state from the facts.
    package init(
        facts: SubscriptionFacts, policy: Policy, version: Int64, suspectedShrink: SuspectedShrink? = nil
    ) {
        let table = DecisionTable(facts, policy: policy)
        let verdict = table.verdict(at: facts.asOf)
        self.facts = facts
        self.version = version
        self.suspectedShrink = suspectedShrink
        leeway = policy.leeway
        timeline = Timeline(of: facts, policy: policy)
        outageAllowance = OutageAllowance(of: facts, timeline: timeline)
        willRenew = facts.currentRenewal?.value.willRenew
        renewsToProductID = willRenew == true ? facts.currentRenewal?.value.renewsToProductID : nil
        startedAt = facts.startedAt ?? facts.asOf
        expiresAt = verdict.expiresAt
        headStartsAt =
            facts.periods.last { $0.expiresAt == verdict.expiresAt }?.purchasedAt ?? facts.startedAt ?? facts.asOf
    }

    /// Copies a state under another version.
    init(copying other: SubscriptionState, version: Int64) {
        self.version = version
        facts = other.facts
        timeline = other.timeline
        leeway = other.leeway
        outageAllowance = other.outageAllowance
        willRenew = other.willRenew
        renewsToProductID = other.renewsToProductID
        startedAt = other.startedAt
        expiresAt = other.expiresAt
        headStartsAt = other.headStartsAt
        suspectedShrink = other.suspectedShrink
    }
}

/// An expiry from a newer answer for the last period that is earlier than known, without cancellation or upgrade.
///
/// A lagging replica at Apple gives such an answer; the second answer that gives the same expiry is accepted.
package struct SuspectedShrink: Sendable, Hashable {
    /// The earlier expiry.
    package var expiresAt: Instant
    /// The instant of the first answer that gave it.
    package var asOf: Instant

    /// Creates a suspicion from its parts.
    package init(expiresAt: Instant, asOf: Instant) {
        self.expiresAt = expiresAt
        self.asOf = asOf
    }
}
