/// What somebody who looks a subscription up knows of it; what is not known makes a stated age longer, never wrong.
package struct Glance: Sendable, Hashable {
    /// Its state.
    package var state: State
    /// Why, for expired, revoked and awaiting.
    package var reason: Reason?
    /// When the newest verified answer came.
    package var answeredAt: Instant
    /// Apple's expiry of the last period charged.
    package var expiresAt: Instant?
    /// When access ends if nothing more is learnt.
    package var accessEndsAt: Instant?
    /// When the state began.
    package var since: Instant?
    /// When the last period charged starts.
    package var chargedAt: Instant?
    /// Whether Apple says that renewal is off.
    package var isRenewalOff: Bool?

    /// A glance from its parts.
    package init(
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
