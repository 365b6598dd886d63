/// Returns the age that the newest answer about a subscription reaches before Apple is asked again, while Apple and the
/// app's rate limit allow; a lease comes on top. Nil if no check is planned before a new receipt or a hint. It follows
/// from the constants of `nextCheck`, which never plans a check later; docs/schedule.md has the rows of the table.
package func ageLimit(of input: FreshnessInput, environment: StoreEnvironment, policy: Policy) -> Delay? {
    let limits = AgeLimits(input: input, policy: policy)
    let limit: Delay? =
        switch environment {
        case .sandbox: limits.sandbox
        case .production: limits.production
        }
    return limit.map { max($0, shortestDelay) }
}

private struct AgeLimits {
    let input: FreshnessInput
    let policy: Policy

    var production: Delay? {
        switch input.state {
        case .active: return earlier(sweep, untilKnown)
        case .awaitingRenewal:
            // A replacement is usually awaited since Apple reported it, a renewal since an end that the clock brought.
            guard input.reason != .replacement else { return longest(scaled(PollingIntervals.longestStep), untilKnown) }
            guard let end = input.expiresAt else { return sweep }
            guard input.answeredAt >= end else { return untilKnown }
            let elapsed = input.answeredAt - end
            let unknown = unknownOutcome(after: elapsed)
            // The outage allowance may follow a grace period, in which the answer came.
            return elapsed < min(policy.leeway, scaled(.days(1))) ? unknown : longest(unknown, retrying)
        case .gracePeriod:
            let afterGrace = input.accessEndsAt.map {
                $0 + scaled(PollingIntervals.afterGrace + PollingIntervals.afterGraceSpread) - input.answeredAt
            }
            return earlier(retrying, afterGrace)
        case .billingRetry:
            guard let end = input.expiresAt else { return longest(retrying, expired) }
            let elapsed = input.answeredAt - end
            if elapsed < scaled(PollingIntervals.retryEnds) { return retrying }
            // It may be a payment of a term, which Apple tries for longer.
            guard elapsed < scaled(PollingIntervals.paymentRetryEnds) else { return expired }
            return expired.map { max($0, retrying ?? $0) }
        case .revoked: return earlier(revoked, nextCharge)
        case .expired: return expired
        }
    }

    /// The time until the first check after the end.
    private var untilKnown: Delay? {
        input.expiresAt.map {
            $0 + scaled(PollingIntervals.afterEnd + PollingIntervals.afterEndSpread) - input.answeredAt
        }
    }

    /// Returns the next step. Each is longer than the one before by a fixed ratio, so steps grow with the elapsed time.
    private func unknownOutcome(after elapsed: Delay) -> Delay {
        let growth = Delay(milliseconds: elapsed.milliseconds * (PollingIntervals.stepGrowthTenths - 10) / 10)
        return min(scaled(PollingIntervals.firstStep) + growth, scaled(PollingIntervals.longestStep))
    }

    private var revoked: Delay? {
        let weekly = spread(PollingIntervals.revoked)
        guard let since = input.since else { return longest(weekly, expired) }
        return input.answeredAt - since < scaled(PollingIntervals.revokedIsYoung) ? weekly : expired
    }

    /// The limit for a refunded period: Apple may charge again when it ends, unless renewal is off.
    private var nextCharge: Delay? {
        guard input.isRenewalOff == false, let end = input.expiresAt else { return nil }
        let elapsed = input.answeredAt - end
        if elapsed < .zero { return untilKnown }
        if elapsed < max(policy.leeway, scaled(PollingIntervals.afterEnd)) { return unknownOutcome(after: elapsed) }
        return elapsed < scaled(PollingIntervals.retryEnds) ? spread(PollingIntervals.expiredUnsaid) : nil
    }

    private var sweep: Delay {
        let charged = input.chargedAt ?? Instant(milliseconds: .min)
        let delay = PollingIntervals.sweep(age: input.answeredAt - charged, policy)
        let patience = max(PollingIntervals.sweepPatience(for: delay), PollingIntervals.spreadLongest)
        return scaled(delay) + scaled(patience)
    }

    private var retrying: Delay? {
        guard let end = input.expiresAt else { return spread(PollingIntervals.retryLater) }
        // Grace or retries that the clock began are discovered like any other end.
        guard input.answeredAt >= end else { return untilKnown }
        let elapsed = input.answeredAt - end
        guard elapsed < scaled(PollingIntervals.retryGrowsUntil) else { return spread(PollingIntervals.retryLater) }
        let part = min(
            max(elapsed.divided(by: PollingIntervals.retryPart), scaled(PollingIntervals.retryShortest)),
            scaled(PollingIntervals.retryLongest))
        return part + part.divided(by: PollingIntervals.retrySpreadPart)
    }

    /// The time until the next of the planned days; if the end is unknown, the longest interval between two of them.
    private var expired: Delay? {
        guard let end = input.expiresAt else { return spread(.days(30)) }
        let next = PollingIntervals.expiredDays.lazy.map { Delay.days($0) }.first {
            end + scaled($0) > input.answeredAt
        }
        return next.map { end + scaled($0 + PollingIntervals.expiredSpread) - input.answeredAt }
    }

    var sandbox: Delay? {
        let part = PollingIntervals.sandboxSpreadPart
        guard let end = input.expiresAt else { return scaled(.days(1) + Delay.days(7).divided(by: part)) }
        let next = PollingIntervals.sandbox.first { end + scaled($0) > input.answeredAt }
        return next.map { end + scaled($0 + $0.divided(by: part)) - input.answeredAt }
    }

    private func spread(_ delay: Delay) -> Delay { scaled(delay + PollingIntervals.spreadLongest) }

    private func scaled(_ delay: Delay) -> Delay { max(delay.divided(by: policy.speedup), shortestDelay) }

    private func earlier(_ one: Delay?, _ other: Delay?) -> Delay? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }

    private func longest(_ one: Delay?, _ other: Delay?) -> Delay? {
        guard let one, let other else { return one ?? other }
        return max(one, other)
    }
}

/// The facts about a subscription that a lookup knows. An unknown fact makes a stated age limit longer, never wrong.
package struct FreshnessInput: Sendable, Hashable {
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
