/// The ledger's state of one subscription. All but `version`, `facts`, `leeway` and `retractions` is derived.
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
    /// What a newer answer took back of Apple's own words; it waits for a second answer.
    package let retractions: [Retraction]

    /// The number of distinct known periods, including refunded and replaced ones.
    package var periods: Int { facts.periods.count }
    /// Apple's clock at the newest verified answer.
    package var asOf: Instant { facts.asOf }

    /// Derives the state from the facts.
    package init(
        facts: SubscriptionFacts, policy: Policy, version: Int64, retractions: [Retraction] = []
    ) {
        let table = DecisionTable(facts, policy: policy)
        let verdict = table.verdict(at: facts.asOf)
        self.facts = facts
        self.version = version
        self.retractions = retractions
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
        retractions = other.retractions
    }
}
