/// Returns the age that the newest answer about a subscription reaches before Apple is asked again, while Apple and the
/// app's rate limit allow; a lease comes on top. Nil if no check is planned before a new receipt or a hint.
///
/// It follows from the same constants as `nextCheck`, which never plans a check later than this. The rows of the table
/// are in docs/schedule.md.
package func ageLimit(of glance: Glance, environment: StoreEnvironment, policy: Policy) -> Delay? {
    let limits = AgeLimits(glance: glance, policy: policy)
    let limit: Delay? =
        switch environment {
        case .sandbox: limits.sandbox
        case .production: limits.production
        }
    return limit.map { max($0, shortestDelay) }
}

private struct AgeLimits {
    let glance: Glance
    let policy: Policy

    var production: Delay? {
        switch glance.state {
        case .active:
            return earlier(sweep, untilKnown)
        case .awaitingRenewal:
            // A replacement is usually awaited since Apple reported it, a renewal since an end that the clock brought.
            guard glance.reason != .replacement else { return longest(scaled(Rhythm.longestStep), untilKnown) }
            guard let end = glance.expiresAt else { return sweep }
            return glance.answeredAt < end ? untilKnown : unknownOutcome(after: glance.answeredAt - end)
        case .gracePeriod:
            let afterGrace = glance.accessEndsAt.map {
                $0 + scaled(Rhythm.afterGrace + Rhythm.afterGraceSpread) - glance.answeredAt
            }
            return earlier(retrying, afterGrace)
        case .billingRetry:
            guard let end = glance.expiresAt else { return longest(retrying, expired) }
            return glance.answeredAt - end < scaled(Rhythm.retryEnds) ? retrying : expired
        case .revoked:
            return earlier(revoked, nextCharge)
        case .expired:
            return expired
        }
    }

    /// The time until the first check after the end.
    private var untilKnown: Delay? {
        glance.expiresAt.map { $0 + scaled(Rhythm.afterEnd + Rhythm.afterEndSpread) - glance.answeredAt }
    }

    /// Returns the next step. Steps grow with the elapsed time, because each is longer than the previous one by a fixed
    /// ratio.
    private func unknownOutcome(after elapsed: Delay) -> Delay {
        let growth = Delay(milliseconds: elapsed.milliseconds * (Rhythm.stepGrowthTenths - 10) / 10)
        return min(scaled(Rhythm.firstStep) + growth, scaled(Rhythm.longestStep))
    }

    private var revoked: Delay? {
        let weekly = spread(Rhythm.revoked)
        guard let since = glance.since else { return longest(weekly, expired) }
        return glance.answeredAt - since < scaled(Rhythm.revokedIsYoung) ? weekly : expired
    }

    /// The limit for a refunded period: Apple may charge again when it ends, unless renewal is off.
    private var nextCharge: Delay? {
        guard glance.isRenewalOff == false, let end = glance.expiresAt else { return nil }
        let elapsed = glance.answeredAt - end
        if elapsed < .zero { return untilKnown }
        if elapsed < max(policy.leeway, scaled(Rhythm.afterEnd)) { return unknownOutcome(after: elapsed) }
        return elapsed < scaled(Rhythm.retryEnds) ? spread(Rhythm.expiredUnsaid) : nil
    }

    private var sweep: Delay {
        let charged = glance.chargedAt ?? Instant(milliseconds: .min)
        let delay = scaled(Rhythm.sweep(age: glance.answeredAt - charged, policy))
        let patience = min(delay.divided(by: Rhythm.sweepPatiencePart), scaled(Rhythm.sweepPatience))
        return delay + max(patience, scaled(Rhythm.spreadLongest))
    }

    private var retrying: Delay? {
        guard let end = glance.expiresAt else { return spread(Rhythm.retryLater) }
        // Grace or retries that the clock began are discovered like any other end.
        guard glance.answeredAt >= end else { return untilKnown }
        let elapsed = glance.answeredAt - end
        guard elapsed < scaled(Rhythm.retryGrowsUntil) else { return spread(Rhythm.retryLater) }
        let part = min(
            max(elapsed.divided(by: Rhythm.retryPart), scaled(Rhythm.retryShortest)), scaled(Rhythm.retryLongest))
        return part + part.divided(by: Rhythm.retrySpreadPart)
    }

    /// The time until the next of the planned days; if the end is unknown, the longest interval between two of them.
    private var expired: Delay? {
        guard let end = glance.expiresAt else { return spread(.days(30)) }
        let next = Rhythm.expiredDays.lazy.map { Delay.days($0) }.first { end + scaled($0) > glance.answeredAt }
        return next.map { end + scaled($0 + Rhythm.expiredSpread) - glance.answeredAt }
    }

    var sandbox: Delay? {
        let part = Rhythm.sandboxSpreadPart
        guard let end = glance.expiresAt else { return scaled(.days(1) + Delay.days(7).divided(by: part)) }
        let next = Rhythm.sandbox.first { end + scaled($0) > glance.answeredAt }
        return next.map { end + scaled($0 + $0.divided(by: part)) - glance.answeredAt }
    }

    private func spread(_ delay: Delay) -> Delay { scaled(delay + Rhythm.spreadLongest) }

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
