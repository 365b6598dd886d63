/// Returns when to ask Apple again about a receipt that polls these subscriptions and holds these purchases.
///
/// `now` is the clock of the plan, `attempts` the number of equal consecutive outcomes without knowledge (empty
/// answers, refusals, failures), `seed` the receipt's own number. The result is the earliest of all checks the receipt is
/// needed for; never in the past. The rows of the table are in docs/schedule.md.
package func nextCheck(
    for states: [SubscriptionState], purchases: [PurchaseState] = [], environment: StoreEnvironment,
    outcome: CheckOutcome, now: Instant, seed: UInt64, attempts: Int = 1, policy: Policy
) -> CheckPlan {
    let moments = CheckMoments(
        environment: environment, now: now, jitter: Jitter(seed: seed), policy: policy)
    let inputs = states.compactMap { ScheduleInput(of: $0, at: now, policy: policy) }
    switch outcome {
    case .verified:
        if states.isEmpty && purchases.isEmpty { return moments.plan(moments.empty(attempts: attempts)) }
        return moments.plan(moments.next(inputs, purchasedAt: purchases.map(\.purchasedAt)))
    case .rejected(let kind, let since, let wasVerified):
        return moments.plan(moments.rejected(kind, attempts: attempts, since: since, wasVerified: wasVerified))
    case .refusedApp:
        return moments.plan(moments.after(PollingIntervals.wrongSecret, from: now))
    case .indeterminate(let new):
        let delay = retryDelay(afterFailures: attempts, new: new, seed: seed, policy: policy)
        let isInOutageAllowance = inputs.contains(where: \.isInOutageAllowance)
        return .at(now + (isInOutageAllowance ? min(delay, moments.scaled(PollingIntervals.inOutageAllowance)) : delay))
    }
}

/// Returns when to ask Apple again about a verified receipt that polls subscriptions with these inputs and holds
/// one-time purchases made at these instants.
package func nextCheck(
    for inputs: [ScheduleInput], purchasedAt: [Instant] = [], environment: StoreEnvironment, now: Instant,
    seed: UInt64, policy: Policy
) -> CheckPlan {
    let moments = CheckMoments(
        environment: environment, now: now, jitter: Jitter(seed: seed), policy: policy)
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
    func empty(attempts: Int) -> Instant? {
        step(PollingIntervals.emptySteps, attempts: attempts)
    }

    /// Returns the check after a refusal: three tries in 24 hours. For a receipt Apple vouched for before, or an
    /// account that is gone, it is daily until three equal refusals over 72 hours.
    ///
    /// A refused secret does not count as an attempt of the receipt. About one that Apple never vouched for, which may be
    /// another app's, Apple is asked less often the longer ago it was first sent (`since`).
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
        case .accountGone:
            return daily(attempts: attempts, since: since)
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
    func sweep(_ charge: Instant) -> Instant {
        after(PollingIntervals.sweep(age: now - charge, policy), from: now)
    }

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
