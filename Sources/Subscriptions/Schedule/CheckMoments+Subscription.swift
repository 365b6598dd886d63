extension CheckMoments {
    /// Returns when one subscription next needs an answer; nil if no further change is expected.
    func next(_ outlook: Outlook) -> Instant? {
        let routine: Instant? =
            switch environment {
            case .sandbox: sandbox(outlook.expiresAt)
            case .production: production(outlook)
            }
        guard outlook.isSuspected else { return routine }
        let soon = now + scaled(Rhythm.suspected)
        return routine.map { min($0, soon) } ?? soon
    }

    private func production(_ outlook: Outlook) -> Instant? {
        let end = outlook.expiresAt
        switch outlook.state {
        case .active:
            return sweep(outlook.headStartsAt, orBy: beforeEnd(outlook))
        case .awaitingRenewal:
            return unknownOutcome(since: outlook.reason == .replacement ? outlook.since : end)
        case .gracePeriod:
            let afterGrace = outlook.accessEndsAt.map {
                $0 + scaled(Rhythm.afterGrace + jitter(Rhythm.afterGraceSpread, at: $0))
            }
            return min(retrying(since: end), afterGrace ?? now + scaled(Rhythm.retryShortest))
        case .billingRetry:
            return now - end < scaled(Rhythm.retryEnds) ? retrying(since: end) : expired(at: end)
        case .revoked:
            let isYoung = now - outlook.since < scaled(Rhythm.revokedIsYoung)
            let routine = isYoung ? after(Rhythm.revoked, from: now) : expired(at: end)
            return [routine, outlook.isRenewalOff ? nil : nextCharge(at: end)].compactMap(\.self).min()
        case .expired:
            if outlook.isHeld { return min(unknownOutcome(since: end), now + scaled(Rhythm.held)) }
            let isOpen = outlook.reason == .unknown && outlook.renewalExpected && now - end < scaled(Rhythm.retryEnds)
            guard isOpen else { return expired(at: end) }
            return min(after(Rhythm.expiredUnsaid, from: now), expired(at: end) ?? .distantFuture)
        }
    }

    /// Returns the check around the end of a period. If a renewal is expected, it comes shortly before the end, when
    /// the renewal usually shows already; otherwise just after the end. The lead is at most a tenth of the period.
    private func beforeEnd(_ outlook: Outlook) -> Instant {
        let end = outlook.expiresAt
        guard outlook.renewalExpected else {
            return end + scaled(Rhythm.afterEnd + jitter(Rhythm.afterEndSpread, at: end))
        }
        let longest = max((end - outlook.headStartsAt).divided(by: Rhythm.leadPartsMin), .zero)
        let usual = policy.preCheckSpread
        let spread = end.isAtTurnOfMonth ? usual.times(Rhythm.turnOfMonthFactor) : usual
        let lead = min(scaled(Rhythm.lead + jitter(spread, at: end)), longest)
        let early = end - lead
        return early > now ? early : end + scaled(Rhythm.afterEnd)
    }

    /// Returns the check after an end without news: after 90 seconds, then in steps growing by 1.7 from 3 minutes to 6
    /// hours.
    private func unknownOutcome(since end: Instant) -> Instant {
        var moment = end + scaled(Rhythm.afterEnd)
        var step = Rhythm.firstStep
        while moment <= now {
            moment = moment + scaled(step)
            guard step < Rhythm.longestStep else { return moment > now ? moment : now + scaled(step) }
            let longer = Delay(milliseconds: step.milliseconds * Rhythm.stepGrowthTenths / 10)
            step = min(longer, Rhythm.longestStep)
        }
        return moment
    }

    /// Returns the check for a refunded period, at whose end Apple may charge again. It is checked like any end of
    /// unknown outcome, and after the leeway daily for as long as Apple may be trying.
    private func nextCharge(at end: Instant) -> Instant? {
        if now < end + max(policy.leeway, scaled(Rhythm.afterEnd)) { return unknownOutcome(since: end) }
        return now - end < scaled(Rhythm.retryEnds) ? after(Rhythm.expiredUnsaid, from: now) : nil
    }

    /// Returns the check while Apple retries: after a quarter of the elapsed time, between an hour and a day; from day
    /// 16 on every second day.
    private func retrying(since end: Instant) -> Instant {
        let elapsed = max(now - end, .zero)
        guard elapsed < scaled(Rhythm.retryGrowsUntil) else { return after(Rhythm.retryLater, from: now) }
        let part = min(
            max(elapsed.divided(by: Rhythm.retryPart), scaled(Rhythm.retryShortest)), scaled(Rhythm.retryLongest))
        return now + part + jitter(part.divided(by: Rhythm.retrySpreadPart), at: now)
    }

    /// Returns the check after an expiry: after 1, 7, 30, 60, 90 days, then monthly up to a year.
    private func expired(at end: Instant) -> Instant? {
        Rhythm.expiredDays.lazy.map { end + scaled(.days($0) + jitter(Rhythm.expiredSpread, at: $0)) }
            .first { $0 > now }
    }

    /// Returns the check in the sandbox: after 15 s, 1, 2, 5, 15 and 60 minutes, then daily for a week.
    private func sandbox(_ end: Instant) -> Instant? {
        Rhythm.sandbox.lazy.map {
            end + scaled($0 + jitter($0.divided(by: Rhythm.sandboxSpreadPart), at: end.milliseconds))
        }.first { $0 > now }
    }

    private func jitter(_ limit: Delay, at moment: Instant) -> Delay { jitter(limit, at: moment.milliseconds) }

    private func jitter(_ limit: Delay, at moment: Int64) -> Delay { jitter.delay(below: limit, at: moment) }
}

extension Instant {
    fileprivate static let distantFuture = Instant(milliseconds: .max)
}

extension Delay {
    /// Returns a multiple of the delay; saturates instead of overflowing.
    func times(_ factor: Int64) -> Delay {
        let (product, overflow) = milliseconds.multipliedReportingOverflow(by: factor)
        return Delay(milliseconds: overflow ? .max : product)
    }

    static func + (left: Delay, right: Delay) -> Delay {
        Delay(milliseconds: left.milliseconds + right.milliseconds)
    }
}
