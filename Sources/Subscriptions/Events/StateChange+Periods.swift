extension StateChange {
    /// Events of new periods, in order of purchase, and of changes in known periods.
    var periodDrafts: [Draft] {
        let known = knownPeriods
        // A next period charged ahead of time does not turn an older new period into a backfill.
        let lastKnownStart = before.facts.periods.last { $0.purchasedAt <= before.asOf }?.purchasedAt ?? before.asOf
        let replacements = Replacement.instants(in: after.facts.periods)
        var drafts: [Draft] = []
        for (index, period) in after.facts.periods.enumerated() {
            if let old = known[index] {
                drafts += termDrafts(old, period)
            } else {
                drafts += newPeriod(index, isBackfill: period.purchasedAt < lastKnownStart)
            }
            drafts += revocationDrafts(known[index], period, replacedAt: replacements[index])
        }
        return drafts
    }

    /// The previously known versions of the current periods, by index among the current periods.
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

    /// Reports a replaced period as refunded only if Apple refunded the rest of its price: the cancellation date alone is
    /// that of the replacement.
    private func revocationDrafts(_ old: Period?, _ period: Period, replacedAt: Instant?) -> [Draft] {
        var detail = period.eventDetail
        if let reason = period.revocation.value.reason ?? old?.revocation.value.reason {
            detail["reason"] = .text(reason)
        }
        let wasRefunded = old?.refundedAt(replacedAt: replacedAt) != nil
        guard let refundedAt = period.refundedAt(replacedAt: replacedAt) else {
            // A refunded period that turns out to be replaced was never refunded.
            let isReversed = wasRefunded && (old?.isUpgraded == true || !period.isUpgraded)
            return isReversed ? [switched(.refundReversed, period.productID, detail)] : []
        }
        guard !wasRefunded else { return [] }
        let kind: EventKind = period.isShared ? .familyRevoked : .refundGranted
        return [draft(kind, period.productID, at: refundedAt, detail)]
    }

    private func newPeriod(_ index: Int, isBackfill: Bool) -> [Draft] {
        let periods = after.facts.periods
        let period = periods[index]
        var detail = period.eventDetail
        if isBackfill { detail["backfill"] = .flag(true) }
        guard !period.gaveWay, let previous = periods[..<index].last(where: { !$0.gaveWay }) else {
            return [draft(.subscriptionRenewed, period.productID, at: period.chargedBy, detail)]
        }
        // Seats that were added to a running period are no renewal.
        if period.isOneOfSeveral, period.expiresAt == previous.expiresAt { return [] }
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

    /// Returns whether the period immediately replaced a next period that had been charged ahead of time.
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

    /// Returns whether the customer came back after the gap: renewal was off when last seen, or Apple had stopped
    /// charging.
    private func hasLapsed(after previous: Period, for gap: Delay) -> Bool {
        let renewal = previous.ending ?? before.facts.renewal
        let longest = previous.isMonthly ? policy.longestPaymentLapse : policy.longestLapse
        let tolerance = renewal?.value.willRenew == false ? policy.lateRenewalTolerance : longest
        return gap > tolerance
    }

    /// Returns whether the last known fact about a period's end is a billing failure.
    private func hadFailed(_ period: Period) -> Bool {
        guard let ending = period.ending, ending.asOf >= period.expiresAt else { return false }
        let intent = ending.value.expirationIntent
        let inGrace = ending.value.graceExpiresAt.map { $0 > ending.asOf } ?? false
        return inGrace || ending.value.isInGraceByStatus
            || (ending.value.inBillingRetry == true && (intent == nil || intent == "2"))
    }

    /// Returns whether an event already reported that the subscription expired with this period.
    private func expiryWasReported(_ period: Period) -> Bool {
        guard let span = before.timeline.span(at: before.asOf), span.state == .expired else { return false }
        return span.expiresAt == period.expiresAt
    }
}

extension Period {
    /// When the period was refunded or revoked; nil if it was not, or if it was merely replaced.
    fileprivate func refundedAt(replacedAt: Instant?) -> Instant? {
        isUpgraded ? restRefundedAt(replacedAt: replacedAt) : cancelledAt
    }

    /// Whether the period was charged ahead of time and replaced before it began, so that nothing ever followed it.
    fileprivate var gaveWay: Bool { isUpgraded && neverBegan }

    /// The start of the period, or its refund if that came earlier: the charge had happened by then, and its event
    /// precedes the refund's.
    fileprivate var chargedBy: Instant { isRefunded ? min(purchasedAt, cancelledAt ?? purchasedAt) : purchasedAt }

    /// Returns the time between two periods. A renewal counts from the expiry, even if the previous period was
    /// refunded.
    fileprivate func gap(after previous: Period, _ policy: Policy) -> Delay {
        let renews = purchasedAt >= previous.expiresAt - previous.tolerance(policy)
        return purchasedAt - (renews ? previous.expiresAt : previous.accessEnd)
    }

    /// Returns whether the period replaced another product immediately rather than at the next renewal: the other
    /// period is marked as upgraded, or was still far from its expiry.
    fileprivate func tookOver(_ previous: Period, _ policy: Policy) -> Bool {
        if previous.isUpgraded { return purchasedAt <= previous.accessEnd + policy.lateRenewalTolerance }
        return purchasedAt < previous.expiresAt - previous.tolerance(policy) && previous.cancelledAt == nil
    }

    /// Returns how far from this period's expiry a renewal may start: at most a tenth of the period.
    private func tolerance(_ policy: Policy) -> Delay {
        min(policy.lateRenewalTolerance, (expiresAt - purchasedAt).divided(by: 10))
    }
}

extension Policy {
    /// The longest gap between two periods that Apple's own billing retries can still explain. Apple retries for 60
    /// days (Apple: "Reducing involuntary subscriber churn").
    fileprivate var longestLapse: Delay { Delay.days(65).divided(by: speedup) }

    /// The same of two payments of a term, which Apple tries for 90 days.
    fileprivate var longestPaymentLapse: Delay { Delay.days(95).divided(by: speedup) }
}
