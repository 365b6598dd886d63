/// The facts about a subscription that a lookup knows. An unknown fact makes a stated age limit longer, never wrong.
package struct FreshnessInput: Sendable, Hashable {
    /// The state.
    package var state: State
    /// The reason, for expired, revoked and awaiting renewal.
    package var reason: Reason?
    /// The instant of the newest verified answer.
    package var answeredAt: Instant
    /// Apple's expiry of the last period charged.
    package var expiresAt: Instant?
    /// The end of access if nothing more is learnt.
    package var accessEndsAt: Instant?
    /// The start of the state.
    package var since: Instant?
    /// The start of the last period charged.
    package var chargedAt: Instant?
    /// Whether Apple says that renewal is off.
    package var isRenewalOff: Bool?

    /// Creates an input from its parts.
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
