/// The state of a subscription at an instant and what comes next: everything the schedule needs to know about it.
package struct ScheduleInput: Sendable, Hashable {
    /// The state.
    package var state: State
    /// The reason, for expired, revoked and awaiting renewal.
    package var reason: Reason?
    /// The start of that state.
    package var since: Instant
    /// The end of that state if Apple reports no change until then; nil for a state that does not end by itself.
    package var until: Instant?
    /// The end of access if Apple reports no change until then; nil without access.
    package var accessEndsAt: Instant?
    /// Apple's expiry of the last period charged.
    package var expiresAt: Instant
    /// The start of that period.
    package var headStartsAt: Instant
    /// Whether access ends only because no news came.
    package var renewalExpected: Bool
    /// Whether the outage allowance extends access past its end because Apple has not been asked since.
    package var isInOutageAllowance: Bool
    /// Whether a second answer must confirm what an answer took back.
    package var isSuspected: Bool
    /// Whether Apple says that it will not charge again.
    package var isRenewalOff: Bool
    /// Whether grace rests on Apple's status alone, without a date of its end.
    package var isGraceAssumed: Bool
    /// Whether Apple may still try to charge after an end by a failed payment.
    package var mayRecover: Bool

    /// Whether the newest period is a payment of a term, which Apple tries for longer.
    package var isMonthly: Bool

    /// Creates an input from its parts.
    package init(
        state: State, reason: Reason?, since: Instant, until: Instant?, accessEndsAt: Instant?, expiresAt: Instant,
        headStartsAt: Instant, renewalExpected: Bool, isInOutageAllowance: Bool = false, isSuspected: Bool = false,
        isRenewalOff: Bool = false, isGraceAssumed: Bool = false, mayRecover: Bool = false,
        isMonthly: Bool = false
    ) {
        self.isMonthly = isMonthly
        self.isGraceAssumed = isGraceAssumed
        self.state = state
        self.reason = reason
        self.since = since
        self.until = until
        self.accessEndsAt = accessEndsAt
        self.expiresAt = expiresAt
        self.headStartsAt = headStartsAt
        self.renewalExpected = renewalExpected
        self.isInOutageAllowance = isInOutageAllowance
        self.isSuspected = isSuspected
        self.isRenewalOff = isRenewalOff
        self.mayRecover = mayRecover
    }

    /// Creates the input of a subscription at an instant, but not before Apple's own clock; nil before its first
    /// period.
    package init?(of subscription: SubscriptionState, at now: Instant, policy: Policy) {
        guard let span = subscription.timeline.span(at: max(now, subscription.asOf)) else { return nil }
        self.init(
            state: span.state, reason: span.reason, since: span.from, until: span.to,
            accessEndsAt: span.entitledUntil, expiresAt: subscription.expiresAt,
            headStartsAt: subscription.headStartsAt, renewalExpected: subscription.outageAllowance.expected,
            isInOutageAllowance: subscription.outageAllowance.applies(at: now, asOf: subscription.asOf, policy: policy),
            isSuspected: !subscription.retractions.isEmpty, isRenewalOff: subscription.nextPayment == false,
            isGraceAssumed: span.state == .gracePeriod
                && subscription.facts.currentRenewalFacts?.isGraceAssumed == true,
            mayRecover: subscription.facts.currentRenewal?.value.mayRecover ?? false,
            isMonthly: subscription.facts.periods.contains { $0.isMonthly && $0.expiresAt == subscription.expiresAt })
    }
}
