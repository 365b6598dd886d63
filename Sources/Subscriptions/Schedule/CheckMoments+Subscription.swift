extension CheckMoments {
    /// When one subscription next needs an answer; nil when nothing is expected of it any more.
    func next(_ outlook: Outlook) -> Instant? {
        let routine: Instant? =
            switch environment {
            case .sandbox: sandbox(outlook.expiresAt)
            case .production: production(outlook)
            }
        guard outlook.isSuspected else { return routine }
        let soon = now + scaled(.seconds(60))
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
            let afterGrace = outlook.accessEndsAt.map { $0 + scaled(.minutes(1) + jitter(.minutes(2), at: $0)) }
            return min(retrying(since: end), afterGrace ?? now + scaled(.hours(1)))
        case .billingRetry:
            return now - end < scaled(.days(65)) ? retrying(since: end) : expired(at: end)
        case .revoked:
            let isRecent = now - outlook.since < scaled(.days(60))
            return isRecent ? after(.days(7), from: now) : expired(at: end)
        case .expired:
            if outlook.isHeld { return min(unknownOutcome(since: end), now + scaled(.minutes(15))) }
            let isOpen = outlook.reason == .unknown && outlook.renewalExpected && now - end < scaled(.days(65))
            return isOpen ? min(after(.days(1), from: now), expired(at: end) ?? .distantFuture) : expired(at: end)
        }
    }

    /// How much longer the checks before an end are spread where more ends come together than usual.
    private static let turnOfMonthFactor: Int64 = 6

    /// Before the end of a period: shortly ahead of it, where an expected renewal usually shows already, else just
    /// after it. The lead is at most a tenth of the period.
    private func beforeEnd(_ outlook: Outlook) -> Instant {
        let end = outlook.expiresAt
        guard outlook.renewalExpected else {
            return end + scaled(.seconds(90) + jitter(.seconds(60), at: end))
        }
        let longest = max((end - outlook.headStartsAt).divided(by: 10), .zero)
        let spread = end.isAtTurnOfMonth ? policy.preCheckSpread.times(Self.turnOfMonthFactor) : policy.preCheckSpread
        let lead = min(scaled(.minutes(30) + jitter(spread, at: end)), longest)
        let early = end - lead
        return early > now ? early : end + scaled(.seconds(90))
    }

    /// After an end without news: 90 seconds, then steps growing by 1.7 from 3 minutes up to 6 hours.
    private func unknownOutcome(since end: Instant) -> Instant {
        var moment = end + scaled(.seconds(90))
        var step = Delay.minutes(3)
        while moment <= now {
            moment = moment + scaled(step)
            guard step < .hours(6) else { return moment > now ? moment : now + scaled(step) }
            step = min(Delay(milliseconds: step.milliseconds * 17 / 10), .hours(6))
        }
        return moment
    }

    /// Apple keeps trying: a quarter of the time passed, between an hour and a day; from day 16 on every second day.
    private func retrying(since end: Instant) -> Instant {
        let elapsed = max(now - end, .zero)
        guard elapsed < scaled(.days(16)) else { return after(.days(2), from: now) }
        let quarter = min(max(elapsed.divided(by: 4), scaled(.hours(1))), scaled(.days(1)))
        return now + quarter + jitter(quarter.divided(by: 20), at: now)
    }

    /// After 1, 7, 30, 60, 90 days, then monthly to a year.
    private func expired(at end: Instant) -> Instant? {
        let days: [Int64] = [1, 7, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 330, 360]
        return days.lazy.map { end + scaled(.days($0) + jitter(.minutes(30), at: $0)) }.first { $0 > now }
    }

    /// After 15 s, 1, 2, 5, 15 and 60 minutes, then daily for a week.
    private func sandbox(_ end: Instant) -> Instant? {
        let delays: [Delay] =
            [.seconds(15)] + [1, 2, 5, 15, 60].map { .minutes($0) } + (1...7).map { .days($0) }
        return delays.lazy.map { end + scaled($0 + jitter($0.divided(by: 20), at: end.milliseconds)) }.first {
            $0 > now
        }
    }

    private func jitter(_ limit: Delay, at moment: Instant) -> Delay { jitter(limit, at: moment.milliseconds) }

    private func jitter(_ limit: Delay, at moment: Int64) -> Delay { jitter.delay(below: limit, at: moment) }
}

extension Instant {
    fileprivate static let distantFuture = Instant(milliseconds: .max)
}

extension Delay {
    fileprivate func times(_ factor: Int64) -> Delay {
        let (product, overflow) = milliseconds.multipliedReportingOverflow(by: factor)
        return Delay(milliseconds: overflow ? .max : product)
    }

    static func + (left: Delay, right: Delay) -> Delay {
        Delay(milliseconds: left.milliseconds + right.milliseconds)
    }
}
