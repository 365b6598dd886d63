/// What somebody who looks a subscription up knows of it; what is not known makes a stated age longer, never wrong.
public struct Glance: Sendable, Hashable {
    /// Its state.
    public var state: State
    /// Why, for expired, revoked and awaiting.
    public var reason: Reason?
    /// When the newest verified answer came.
    public var answeredAt: Instant
    /// Apple's expiry of the last period charged.
    public var expiresAt: Instant?
    /// When access ends if nothing more is learnt.
    public var accessEndsAt: Instant?
    /// When the state began.
    public var since: Instant?
    /// When the last period charged starts.
    public var chargedAt: Instant?
    /// Whether Apple says that renewal is off.
    public var isRenewalOff: Bool?

    /// A glance from its parts.
    public init(
        state: State, reason: Reason?, answeredAt: Instant, expiresAt: Instant? = nil, accessEndsAt: Instant? = nil,
        since: Instant? = nil, chargedAt: Instant? = nil, isRenewalOff: Bool? = nil
    ) {
        self.state = state
        self.reason = reason
        self.answeredAt = answeredAt
        self.expiresAt = expiresAt
        self.accessEndsAt = accessEndsAt
        self.since = since
        self.chargedAt = chargedAt
        self.isRenewalOff = isRenewalOff
    }
}
