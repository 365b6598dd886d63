/// Returns when to ask Apple again about a receipt that polls these subscriptions and holds these purchases.
///
/// `now` is the clock of the plan, `attempts` the number of equal consecutive outcomes without knowledge (empty
/// answers, refusals, failures), `seed` the receipt's own number. The result is the earliest of all checks the receipt is
/// needed for; never in the past. The rows of the table are in docs/schedule.md.
package func nextCheck(
    for states: [SubscriptionState], purchases: [PurchaseState] = [], environment: StoreEnvironment,
    outcome: CheckOutcome, now: Instant, seed: UInt64, attempts: Int = 1, policy: Policy
) -> CheckPlan {
    let moments = CheckMoments(environment: environment, now: now, jitter: Jitter(seed: seed), policy: policy)
    let inputs = states.compactMap { ScheduleInput(of: $0, at: now, policy: policy) }
    switch outcome {
    case .verified:
        if states.isEmpty && purchases.isEmpty { return moments.plan(moments.empty(attempts: attempts)) }
        return moments.plan(moments.next(inputs, purchasedAt: purchases.map(\.purchasedAt)))
    case .rejected(let kind, let since, let wasVerified):
        return moments.plan(moments.rejected(kind, attempts: attempts, since: since, wasVerified: wasVerified))
    case .refusedApp: return moments.plan(moments.after(PollingIntervals.wrongSecret, from: now))
    case .indeterminate(let new):
        let delay = retryDelay(afterFailures: attempts, new: new, seed: seed, policy: policy)
        let isInOutageAllowance = inputs.contains(where: \.isInOutageAllowance)
        return .at(now + (isInOutageAllowance ? min(delay, moments.scaled(PollingIntervals.inOutageAllowance)) : delay))
    }
}

/// Returns the same for a verified receipt, by the inputs of its subscriptions and the instants of its purchases.
package func nextCheck(
    for inputs: [ScheduleInput], purchasedAt: [Instant] = [], environment: StoreEnvironment, now: Instant,
    seed: UInt64, policy: Policy
) -> CheckPlan {
    let moments = CheckMoments(environment: environment, now: now, jitter: Jitter(seed: seed), policy: policy)
    return moments.plan(moments.next(inputs, purchasedAt: purchasedAt))
}

/// The planned instants for one receipt at one time.
struct CheckMoments {
    let environment: StoreEnvironment
    let now: Instant
    let jitter: Jitter
    let policy: Policy

    func plan(_ moment: Instant?) -> CheckPlan {
        moment.map { .at(max($0, now + shortestDelay)) } ?? .retired
    }

    /// Returns a delay of the schedule, divided by the policy's speedup.
    func scaled(_ delay: Delay) -> Delay { max(delay.divided(by: policy.speedup), shortestDelay) }

    /// Returns the instant after a delay, spread over a twentieth of the delay, at most half an hour.
    func after(_ delay: Delay, from start: Instant) -> Instant {
        let spread = jitter.delay(
            below: min(delay.divided(by: PollingIntervals.spreadPart), PollingIntervals.spreadLongest),
            at: start.milliseconds)
        return start + scaled(delay + spread)
    }

    /// Returns the earliest of all needed checks; nil if there is none.
    func next(_ inputs: [ScheduleInput], purchasedAt: [Instant]) -> Instant? {
        (inputs.map(next) + purchasedAt.map(next(purchasedAt:))).compactMap(\.self).min()
    }

    /// Returns the check of a receipt without purchases: taken too early, or never to hold any.
    func empty(attempts: Int) -> Instant? { step(PollingIntervals.emptySteps, attempts: attempts) }

    /// Returns the check after a refusal: three tries in 24 hours. For a receipt Apple vouched for before, or an
    /// account that is gone, it is daily until three equal refusals over 72 hours. A refused secret does not count as
    /// an attempt: about a receipt that Apple never vouched for, which may be another app's, Apple is asked less often
    /// the longer ago it was first sent (`since`).
    func rejected(_ kind: Refusal.Kind, attempts: Int, since: Instant, wasVerified: Bool) -> Instant? {
        switch kind {
        case .wrongSecret where wasVerified:
            return after(PollingIntervals.wrongSecret, from: now)
        case .wrongSecret:
            let age = (now - since).times(Int64(policy.speedup))
            return after(
                min(
                    max(age.divided(by: PollingIntervals.wrongSecretPart), PollingIntervals.wrongSecret),
                    PollingIntervals.wrongSecretLongest), from: now)
        case .accountGone: return daily(attempts: attempts, since: since)
        case .unknownTransaction:
            return wasVerified
                ? daily(attempts: attempts, since: since) : step(PollingIntervals.unknownSteps, attempts: attempts)
        case .otherBundle, .notAuthentic, .wrongEnvironment, .badRequest:
            return wasVerified
                ? daily(attempts: attempts, since: since) : step(PollingIntervals.refusedSteps, attempts: attempts)
        }
    }

    private func step(_ steps: [Delay], attempts: Int) -> Instant? {
        steps.dropFirst(max(attempts, 1) - 1).first.map { after($0, from: now) }
    }

    private func daily(attempts: Int, since: Instant) -> Instant? {
        let lasted = now - since >= PollingIntervals.refusedFinally.divided(by: policy.speedup)
        return attempts >= PollingIntervals.refusalsFinal && lasted
            ? nil : after(PollingIntervals.refusedDaily, from: now)
    }

    /// Returns the refund check of a one-time purchase; nil after day 90, and in the sandbox.
    func next(purchasedAt: Instant) -> Instant? {
        switch environment {
        case .sandbox: nil
        case .production: now - purchasedAt < scaled(PollingIntervals.purchaseSweepEnds) ? sweep(purchasedAt) : nil
        }
    }

    /// Returns the next refund check: less often the older the newest charge is, stretched by the policy's factor.
    func sweep(_ charge: Instant) -> Instant { after(PollingIntervals.sweep(age: now - charge, policy), from: now) }

    /// Returns the next refund check, or another check that is due anyway. The other check serves for both if it comes
    /// at most half a delay, and at most four days, after it.
    func sweep(_ charge: Instant, orBy other: Instant) -> Instant {
        let delay = PollingIntervals.sweep(age: now - charge, policy)
        let latest = scaled(delay) + scaled(PollingIntervals.sweepPatience(for: delay))
        return other <= now + latest ? other : sweep(charge)
    }
}

/// The plan for asking Apple again about a receipt.
package enum CheckPlan: Sendable, Hashable {
    /// At this instant, on the clock that gave `now`.
    case at(Instant)
    /// Not before a new upload or a hint from Apple.
    case retired
}

/// The outcome of the last check of a receipt, as far as the schedule depends on it.
package enum CheckOutcome: Sendable, Hashable {
    /// Apple vouched for the receipt.
    case verified
    /// Apple, or the app's rule, did not. `since` is the instant of the first of the consecutive refusals, with a refused
    /// secret that of the first upload; `wasVerified` says whether Apple vouched for the receipt before.
    case rejected(Refusal.Kind, since: Instant, wasVerified: Bool)
    /// Apple refuses the app itself, or is not asked because it does, which says nothing about the receipt.
    case refusedApp
    /// There was no usable answer. A customer is waiting for the answer to a `new` receipt.
    case indeterminate(new: Bool)
}

extension CheckMoments {
    /// Returns when one subscription next needs an answer; nil if no further change is expected.
    func next(_ input: ScheduleInput) -> Instant? {
        switch environment {
        case .sandbox: sandbox(input.expiresAt)
        case .production: production(input)
        }
    }

    private func production(_ input: ScheduleInput) -> Instant? {
        let end = input.expiresAt
        switch input.state {
        case .active: return sweep(input.headStartsAt, orBy: beforeEnd(input))
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
        case .billingRetry: return now - end < retryEnds(input) ? retrying(since: end) : expired(at: end)
        case .revoked:
            let isYoung = now - input.since < scaled(PollingIntervals.revokedIsYoung)
            let routine = isYoung ? after(PollingIntervals.revoked, from: now) : expired(at: end)
            return [routine, input.isRenewalOff ? nil : nextCharge(at: end, retryEnds(input))].compactMap(\.self).min()
        case .expired:
            if input.isInOutageAllowance {
                return min(unknownOutcome(since: end), now + scaled(PollingIntervals.inOutageAllowance))
            }
            guard now - end < retryEnds(input), let soon = whileOpen(input) else { return expired(at: end) }
            return min(soon, expired(at: end) ?? .distantFuture)
        }
    }

    /// Returns the check of an expired subscription that may go on: Apple said nothing, or may still try to charge.
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

    /// Returns the check after an end without news: after 90 seconds, then in steps growing by 1.7 from 3 min to 6 h.
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
        PollingIntervals.expiredDays.lazy
            .map { end + scaled(.days($0) + jitter(PollingIntervals.expiredSpread, at: $0)) }
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

/// The state of a subscription at an instant and what comes next: everything the schedule needs to know about it.
package struct ScheduleInput: Sendable, Hashable {
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
    /// Whether Apple says that it will not charge again.
    package var isRenewalOff: Bool
    /// Whether grace rests on Apple's status alone, without a date of its end.
    package var isGraceAssumed: Bool
    /// Whether Apple may still try to charge after an end by a failed payment.
    package var mayRecover: Bool

    /// Whether the newest period is a payment of a term, which Apple tries for longer.
    package var isMonthly: Bool

    package init(
        state: State, reason: Reason?, since: Instant, until: Instant?, accessEndsAt: Instant?, expiresAt: Instant,
        headStartsAt: Instant, renewalExpected: Bool, isInOutageAllowance: Bool = false, isRenewalOff: Bool = false,
        isGraceAssumed: Bool = false, mayRecover: Bool = false, isMonthly: Bool = false
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
        self.isRenewalOff = isRenewalOff
        self.mayRecover = mayRecover
    }

    /// Creates the input of a subscription at an instant, at the earliest Apple's clock; nil before its first period.
    package init?(of subscription: SubscriptionState, at now: Instant, policy: Policy) {
        guard let span = subscription.timeline.span(at: max(now, subscription.asOf)) else { return nil }
        self.init(
            state: span.state, reason: span.reason, since: span.from, until: span.to,
            accessEndsAt: span.entitledUntil, expiresAt: subscription.expiresAt,
            headStartsAt: subscription.headStartsAt, renewalExpected: subscription.outageAllowance.expected,
            isInOutageAllowance: subscription.outageAllowance.applies(at: now, asOf: subscription.asOf, policy: policy),
            isRenewalOff: subscription.nextPayment == false,
            isGraceAssumed: span.state == .gracePeriod
                && subscription.facts.currentRenewalFacts?.isGraceAssumed == true,
            mayRecover: subscription.facts.currentRenewal?.value.mayRecover ?? false,
            isMonthly: subscription.facts.periods.contains { $0.isMonthly && $0.expiresAt == subscription.expiresAt })
    }
}
