extension StateChange {
    /// Events of new periods, in order of purchase, and of what changed in known ones.
    var periodDrafts: [Draft] {
        let known = knownPeriods
        // A next period charged ahead of time is not what a fresh one is older than.
        let lastKnownStart = before.facts.periods.last { $0.purchasedAt <= before.asOf }?.purchasedAt ?? before.asOf
        var drafts: [Draft] = []
        for (index, period) in after.facts.periods.enumerated() {
            if let old = known[index] {
                drafts += termDrafts(old, period)
            } else {
                drafts += newPeriod(index, isBackfill: period.purchasedAt < lastKnownStart)
            }
            drafts += revocationDrafts(known[index]?.revocation.value ?? Revocation(), period)
        }
        return drafts
    }

    /// What was known before of the periods that are known now, by their place.
    var knownPeriods: [Int: Period] {
        let match = PeriodMatch(after.facts.periods)
        return before.facts.periods.reduce(into: [:]) { known, period in
            guard let index = match.index(of: period) else { return }
            known[index] = known[index].map { $0.asOf < period.asOf ? period : $0 } ?? period
        }
    }

    private func termDrafts(_ old: Period, _ new: Period) -> [Draft] {
        guard old.expiresAt != new.expiresAt, new.cancelledAt == nil, !new.isUpgraded else { return [] }
        var detail = new.eventDetail
        detail["previous_expires_at"] = .text(old.expiresAt.iso8601)
        let kind: EventKind = new.expiresAt > old.expiresAt ? .subscriptionExtended : .subscriptionShortened
        return [switched(kind, new.productID, detail)]
    }

    /// A replaced period was not refunded, whatever cancellation date it carries.
    private func revocationDrafts(_ old: Revocation, _ period: Period) -> [Draft] {
        let new = period.revocation.value
        var detail = period.eventDetail
        if let reason = new.reason ?? old.reason { detail["reason"] = .text(reason) }
        let wasRefunded = old.cancelledAt != nil && !old.isUpgraded
        if let cancelledAt = new.cancelledAt, !new.isUpgraded, !wasRefunded {
            let kind: EventKind = period.isFamilyShared ? .familyRevoked : .refundGranted
            return [draft(kind, period.productID, at: cancelledAt, detail)]
        }
        guard wasRefunded, new.cancelledAt == nil, !new.isUpgraded else { return [] }
        return [switched(.refundReversed, period.productID, detail)]
    }

    private func newPeriod(_ index: Int, isBackfill: Bool) -> [Draft] {
        let periods = after.facts.periods
        let period = periods[index]
        var detail = period.eventDetail
        if isBackfill { detail["backfill"] = .flag(true) }
        guard !period.gaveWay, let previous = periods[..<index].last(where: { !$0.gaveWay }) else {
            return [draft(.subscriptionRenewed, period.productID, at: period.chargedBy, detail)]
        }
        var drafts: [Draft] = []
        if previous.productID != period.productID {
            var change = detail
            change["from_product_id"] = .text(previous.productID.text)
            change["to_product_id"] = .text(period.productID.text)
            drafts.append(draft(.productChanged, period.productID, at: period.chargedBy, change))
            if period.tookOver(previous, policy) || tookOverNext(index) { return drafts }
        }
        let kind = kind(of: period, after: previous)
        if kind == .subscriptionRenewed || kind == .trialConverted, expiryWasReported(previous) {
            detail["late"] = .flag(true)
        }
        drafts.append(draft(kind, period.productID, at: period.chargedBy, detail))
        return drafts
    }

    /// Whether the period replaced at once a next one that had been charged ahead of time.
    private func tookOverNext(_ index: Int) -> Bool {
        let period = after.facts.periods[index]
        return after.facts.periods[(index + 1)...].prefix { $0.gaveWay }.contains { next in
            guard next.productID != period.productID, let cancelledAt = next.cancelledAt else {
                return false
            }
            return period.purchasedAt <= cancelledAt + policy.lateRenewalTolerance
                && cancelledAt <= period.purchasedAt + policy.lateRenewalTolerance
        }
    }

    private func kind(of period: Period, after previous: Period) -> EventKind {
        let gap = period.gap(after: previous, policy)
        if hasLapsed(after: previous, for: gap) { return .subscriptionReactivated }
        if previous.isTrial { return .trialConverted }
        if hadFailed(previous) || gap > policy.lateRenewalTolerance { return .subscriptionRecovered }
        return .subscriptionRenewed
    }

    /// Whether a purchase after the gap is a return: renewal was off when last seen, or Apple has given up charging.
    private func hasLapsed(after previous: Period, for gap: Delay) -> Bool {
        let renewal = previous.ending ?? before.facts.renewal
        let tolerance = renewal?.value.willRenew == false ? policy.lateRenewalTolerance : policy.longestLapse
        return gap > tolerance
    }

    /// Whether the last that was known of a period's end is a billing failure.
    private func hadFailed(_ period: Period) -> Bool {
        guard let ending = period.ending, ending.asOf >= period.expiresAt else { return false }
        let intent = ending.value.expirationIntent
        let inGrace = ending.value.graceExpiresAt.map { $0 > ending.asOf } ?? false
        return inGrace || (ending.value.inBillingRetry == true && (intent == nil || intent == "2"))
    }

    /// Whether consumers were told that the subscription expired with this period.
    private func expiryWasReported(_ period: Period) -> Bool {
        guard let span = before.timeline.span(at: before.asOf), span.state == .expired else { return false }
        return span.expiresAt == period.expiresAt
    }
}

extension Period {
    /// Whether it was charged ahead of time and replaced before it began: nothing ever followed it.
    fileprivate var gaveWay: Bool { isUpgraded && neverBegan }

    /// Its start; where it was refunded before, the refund: it was charged by then, and is told before the refund.
    fileprivate var chargedBy: Instant { isRefunded ? min(purchasedAt, cancelledAt ?? purchasedAt) : purchasedAt }

    /// The time without a period in between; a renewal starts at the expiry, even of a refunded one.
    fileprivate func gap(after previous: Period, _ policy: Policy) -> Delay {
        let renews = purchasedAt >= previous.expiresAt - previous.tolerance(policy)
        return purchasedAt - (renews ? previous.expiresAt : previous.accessEnd)
    }

    /// Whether it replaced another product at once rather than at the next renewal: the other is marked as upgraded, or
    /// was still well under way.
    fileprivate func tookOver(_ previous: Period, _ policy: Policy) -> Bool {
        if previous.isUpgraded { return purchasedAt <= previous.accessEnd + policy.lateRenewalTolerance }
        return purchasedAt < previous.expiresAt - previous.tolerance(policy) && previous.cancelledAt == nil
    }

    /// How far from its expiry a renewal may start: never more than a tenth of the period.
    private func tolerance(_ policy: Policy) -> Delay {
        min(policy.lateRenewalTolerance, (expiresAt - purchasedAt).divided(by: 10))
    }
}

extension Policy {
    /// The longest gap between two periods after which Apple's own attempts may still have made the second: it charges for
    /// 60 days (Apple: "Reducing involuntary subscriber churn").
    fileprivate var longestLapse: Delay { Delay.days(65).divided(by: speedup) }
}
