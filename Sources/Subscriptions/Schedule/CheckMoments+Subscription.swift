extension CheckMoments {
    /// Returns when one subscription next needs an answer; nil if no further change is expected.
    func next(_ input: ScheduleInput) -> Instant? {
        let routine: Instant? =
            switch environment {
            case .sandbox: sandbox(input.expiresAt)
            case .production: production(input)
            }
        guard input.isSuspected else { return routine }
        let soon = now + scaled(PollingIntervals.suspected)
        return routine.map { min($0, soon) } ?? soon
    }

    private func production(_ input: ScheduleInput) -> Instant? {
        let end = input.expiresAt
        switch input.state {
        case .active:
            return sweep(input.headStartsAt, orBy: beforeEnd(input))
        case .awaitingRenewal:
            guard input.reason == .replacement else { return unknownOutcome(since: end) }
            // What was to be replaced may end before its replacement shows.
            return min(unknownOutcome(since: input.since), end > now ? unknownOutcome(since: end) : .distantFuture)
        case .gracePeriod:
            let afterGrace = input.accessEndsAt.map {
                $0 + scaled(PollingIntervals.afterGrace + jitter(PollingIntervals.afterGraceSpread, at: $0))
            }
            let known = min(retrying(since: end), afterGrace ?? now + scaled(PollingIntervals.retryShortest))
            return input.isGraceAssumed ? min(known, now + scaled(PollingIntervals.assumedGrace)) : known
        case .billingRetry:
            return now - end < retryEnds(input) ? retrying(since: end) : expired(at: end)
        case .revoked:
            let isYoung = now - input.since < scaled(PollingIntervals.revokedIsYoung)
            let routine = isYoung ? after(PollingIntervals.revoked, from: now) : expired(at: end)
            return [routine, input.isRenewalOff ? nil : nextCharge(at: end, retryEnds(input))].compactMap(\.self).min()
        case .expired:
            if input.isInOutageAllowance {
                return min(unknownOutcome(since: end), now + scaled(PollingIntervals.inOutageAllowance))
            }
            guard now - end < retryEnds(input), let soon = whileOpen(input) else {
                return expired(at: end)
            }
            return min(soon, expired(at: end) ?? .distantFuture)
        }
    }

    /// Returns the check of an expired subscription that may go on: Apple merely said nothing, or named a failed payment
    /// and did not say that it gave up.
    private func whileOpen(_ input: ScheduleInput) -> Instant? {
        switch input.reason {
        case .unknown where input.renewalExpected: after(PollingIntervals.expiredUnsaid, from: now)
        case .billingError where input.mayRecover: retrying(since: input.expiresAt)
        case .unknown, .billingError, .voluntary, .priceIncrease, .productUnavailable, .other, .refund, .family,
            .renewal, .replacement, nil:
            nil
        }
    }

    /// Returns the check around the end of a period. If a renewal is expected, it comes shortly before the end, when
    /// the renewal usually shows already; otherwise just after the end. The lead is at most a tenth of the period.
    private func beforeEnd(_ input: ScheduleInput) -> Instant {
        let end = input.expiresAt
        guard input.renewalExpected else {
            return end + scaled(PollingIntervals.afterEnd + jitter(PollingIntervals.afterEndSpread, at: end))
        }
        let longest = max((end - input.headStartsAt).divided(by: PollingIntervals.leadPartsMin), .zero)
        let usual = policy.preCheckSpread
        let spread = end.isAtTurnOfMonth ? usual.times(PollingIntervals.turnOfMonthFactor) : usual
        let lead = min(scaled(PollingIntervals.lead + jitter(spread, at: end)), longest)
        let early = end - lead
        return early > now ? early : end + scaled(PollingIntervals.afterEnd)
    }

    /// Returns the check after an end without news: after 90 seconds, then in steps growing by 1.7 from 3 minutes to 6
    /// hours.
    private func unknownOutcome(since end: Instant) -> Instant {
        var moment = end + scaled(PollingIntervals.afterEnd)
        var step = PollingIntervals.firstStep
        while moment <= now {
            moment = moment + scaled(step)
            guard step < PollingIntervals.longestStep else { return moment > now ? moment : now + scaled(step) }
            let longer = Delay(milliseconds: step.milliseconds * PollingIntervals.stepGrowthTenths / 10)
            step = min(longer, PollingIntervals.longestStep)
        }
        return moment
    }

    /// Returns the check for a refunded period, at whose end Apple may charge again. It is checked like any end of
    /// unknown outcome, and after the leeway daily for as long as Apple may be trying.
    private func nextCharge(at end: Instant, _ retryEnds: Delay) -> Instant? {
        if now < end + max(policy.leeway, scaled(PollingIntervals.afterEnd)) { return unknownOutcome(since: end) }
        return now - end < retryEnds ? after(PollingIntervals.expiredUnsaid, from: now) : nil
    }

    /// Returns how long Apple may try to charge after an end.
    private func retryEnds(_ input: ScheduleInput) -> Delay {
        scaled(input.isMonthly ? PollingIntervals.paymentRetryEnds : PollingIntervals.retryEnds)
    }

    /// Returns the check while Apple retries: after a quarter of the elapsed time, between an hour and a day; from day
    /// 16 on every second day.
    private func retrying(since end: Instant) -> Instant {
        let elapsed = max(now - end, .zero)
        guard elapsed < scaled(PollingIntervals.retryGrowsUntil) else {
            return after(PollingIntervals.retryLater, from: now)
        }
        let part = min(
            max(elapsed.divided(by: PollingIntervals.retryPart), scaled(PollingIntervals.retryShortest)),
            scaled(PollingIntervals.retryLongest))
        return now + part + jitter(part.divided(by: PollingIntervals.retrySpreadPart), at: now)
    }

    /// Returns the check after an expiry: after 1, 7, 30, 60, 90 days, then monthly up to a year.
    private func expired(at end: Instant) -> Instant? {
        PollingIntervals.expiredDays.lazy.map {
            end + scaled(.days($0) + jitter(PollingIntervals.expiredSpread, at: $0))
        }
        .first { $0 > now }
    }

    /// Returns the check in the sandbox: after 15 s, 1, 2, 5, 15 and 60 minutes, then daily for a week.
    private func sandbox(_ end: Instant) -> Instant? {
        PollingIntervals.sandbox.lazy.map {
            end + scaled($0 + jitter($0.divided(by: PollingIntervals.sandboxSpreadPart), at: end.milliseconds))
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
