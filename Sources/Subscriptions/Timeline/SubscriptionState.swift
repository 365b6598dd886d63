/// What the ledger remembers of one subscription. All but `version`, `facts`, `leeway` and `suspectedShrink` follows.
package struct SubscriptionState: Sendable, Hashable {
    /// What Apple has said.
    package let facts: SubscriptionFacts
    /// What it means over time.
    package let timeline: Timeline
    /// Counts the changes, from 1.
    package let version: Int64
    /// The leeway the timeline was made with.
    package let leeway: Delay
    /// Whether the end of access waits for an answer.
    package let hold: Hold
    /// Apple's `auto_renew_status`, nil where unknown.
    package let willRenew: Bool?
    /// The product that will renew; nil unless `willRenew` is true.
    package let renewsToProductID: ProductID?
    /// The earliest purchase of its periods.
    package let startedAt: Instant
    /// Apple's expiry of the last period charged, as of `facts.asOf`.
    package let expiresAt: Instant
    /// When that period starts.
    package let headStartsAt: Instant
    /// A newer answer moved the head's expiry back without a reason; waits for a second equal answer.
    package let suspectedShrink: SuspectedShrink?

    /// How many distinct periods are known, refunded and replaced ones too.
    package var periods: Int { facts.periods.count }
    /// Apple's clock at the newest verified answer.
    package var asOf: Instant { facts.asOf }

    /// The state that follows from the facts.
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
        hold = Hold(of: facts, timeline: timeline)
        willRenew = facts.currentRenewal?.value.willRenew
        renewsToProductID = willRenew == true ? facts.currentRenewal?.value.renewsToProductID : nil
        startedAt = facts.startedAt ?? facts.asOf
        expiresAt = verdict.expiresAt
        headStartsAt =
            facts.periods.last { $0.expiresAt == verdict.expiresAt }?.purchasedAt ?? facts.startedAt ?? facts.asOf
    }

    /// The same state under another version.
    init(copying other: SubscriptionState, version: Int64) {
        self.version = version
        facts = other.facts
        timeline = other.timeline
        leeway = other.leeway
        hold = other.hold
        willRenew = other.willRenew
        renewsToProductID = other.renewsToProductID
        startedAt = other.startedAt
        expiresAt = other.expiresAt
        headStartsAt = other.headStartsAt
        suspectedShrink = other.suspectedShrink
    }
}

/// An expiry that a newer answer gives for the last period, earlier than known, without cancellation or upgrade.
///
/// That is what a lagging replica of Apple's does; the second answer that says so is believed.
package struct SuspectedShrink: Sendable, Hashable {
    /// The earlier expiry.
    package var expiresAt: Instant
    /// The answer that gave it first.
    package var asOf: Instant

    /// A suspicion from its parts.
    package init(expiresAt: Instant, asOf: Instant) {
        self.expiresAt = expiresAt
        self.asOf = asOf
    }
}
