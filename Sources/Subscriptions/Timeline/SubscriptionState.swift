/// What the ledger remembers of one subscription. All but `version`, `facts`, `leeway` and `suspectedShrink` follows.
public struct SubscriptionState: Sendable, Hashable {
    /// What Apple has said.
    public let facts: SubscriptionFacts
    /// What it means over time.
    public let timeline: Timeline
    /// Counts the changes, from 1.
    public let version: Int64
    /// The leeway the timeline was made with.
    public let leeway: Delay
    /// Whether the end of access waits for an answer.
    public let hold: Hold
    /// Apple's `auto_renew_status`, nil where unknown.
    public let willRenew: Bool?
    /// The product that will renew; nil unless `willRenew` is true.
    public let renewsToProductID: ProductID?
    /// The earliest purchase of its periods.
    public let startedAt: Instant
    /// Apple's expiry of the last period charged, as of `facts.asOf`.
    public let expiresAt: Instant
    /// When that period starts.
    public let headStartsAt: Instant
    /// A newer answer moved the head's expiry back without a reason; waits for a second equal answer.
    public let suspectedShrink: SuspectedShrink?

    /// How many distinct periods are known, refunded and replaced ones too.
    public var periods: Int { facts.periods.count }
    /// Apple's clock at the newest verified answer.
    public var asOf: Instant { facts.asOf }

    /// The state that follows from the facts.
    public init(
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
public struct SuspectedShrink: Sendable, Hashable {
    /// The earlier expiry.
    public var expiresAt: Instant
    /// The answer that gave it first.
    public var asOf: Instant

    /// A suspicion from its parts.
    public init(expiresAt: Instant, asOf: Instant) {
        self.expiresAt = expiresAt
        self.asOf = asOf
    }
}
