import SeededRandom
import Subscriptions
import Testing

@Suite("Lookups never state a lower age limit than the schedule plans") struct AgeLimitTests {
    /// A plan made when an answer came, and the subscription it was made for.
    private struct Planned {
        let state: SubscriptionState
        let answeredAt: Instant
        let next: Instant
        let environment: StoreEnvironment
        let policy: Policy
    }

    private func planned(using random: inout Seeded) -> Planned? {
        let environment = Bool.random(using: &random) ? StoreEnvironment.production : .sandbox
        var policy = Policy.standard(
            for: environment, speedup: [1, 1, 60, 100_000].randomElement(using: &random) ?? 1)
        policy.sweepStretch = [1, 2].randomElement(using: &random) ?? 1
        policy.preCheckSpread = .minutes([0, 10, 720].randomElement(using: &random) ?? 10)
        policy.leeway = .minutes([0, 5, 120, 10_080].randomElement(using: &random) ?? 120)
        let state = SubscriptionState(facts: RandomLife.facts(using: &random), policy: policy, version: 1)
        // An answer that says the same again later is as good.
        let far = Int64.random(in: 0...4, using: &random) == 0 ? Int64(500 * 86_400_000) : 40 * 86_400_000
        let answeredAt = state.asOf + Delay(milliseconds: Int64.random(in: 0...far, using: &random))
        let facts = SubscriptionFacts(
            originalTransactionID: state.facts.originalTransactionID, asOf: answeredAt, periods: state.facts.periods,
            renewal: state.facts.renewal)
        let again = SubscriptionState(facts: facts, policy: policy, version: 2)
        let plan = nextCheck(
            for: [again], environment: environment, outcome: .verified, now: answeredAt, seed: random.next(),
            policy: policy)
        guard case .at(let next) = plan else { return nil }
        return Planned(
            state: again, answeredAt: answeredAt, next: next, environment: environment, policy: policy)
    }

    @Test("No check is planned later than stated", arguments: [20_261_121, 7, 1, 4, 5, 12] as [UInt64])
    func noCheckIsPlannedLaterThanStated(seed: UInt64) throws {
        var random = Seeded(seed: seed)
        var seen: [State: Int] = [:]
        for _ in 0..<2_000 {
            guard let planned = planned(using: &random) else { continue }
            let wait = planned.next - planned.answeredAt
            // A lookup at any time until the check must state an age at least as long.
            for part in [0, 1, 50, 99, 100] as [Int64] {
                let moment = planned.answeredAt + Delay(milliseconds: wait.milliseconds / 100 * part)
                guard let input = ScheduleInput(of: planned.state, at: moment, policy: planned.policy) else { continue }
                seen[input.state, default: 0] += 1
                for input in glances(input, planned) {
                    let limit = ageLimit(of: input, environment: planned.environment, policy: planned.policy)
                    // The last of all checks may lie a spread behind the last day that is promised.
                    guard let limit else {
                        #expect(wait <= .hours(9), "\(seed): no bound for \(input), planned after \(wait)")
                        continue
                    }
                    #expect(wait <= limit, "\(seed): \(input) of \(planned.environment) at \(moment)")
                }
            }
        }
        for state in State.allCases { #expect(seen[state, default: 0] > 0, "\(state) was never seen: \(seen)") }
    }

    /// What a caller may know: everything, or as little as a lookup.
    private func glances(_ input: ScheduleInput, _ planned: Planned) -> [FreshnessInput] {
        let state = input.isInOutageAllowance ? State.awaitingRenewal : input.state
        let reason = input.isInOutageAllowance ? Reason.renewal : input.reason
        var all = FreshnessInput(
            state: state, reason: reason, answeredAt: planned.answeredAt, expiresAt: input.expiresAt,
            accessEndsAt: input.isInOutageAllowance ? nil : input.accessEndsAt, since: input.since,
            chargedAt: input.headStartsAt, isRenewalOff: input.isRenewalOff)
        if input.isInOutageAllowance { all.since = nil }
        var little = all
        (little.since, little.chargedAt, little.isRenewalOff) = (nil, nil, nil)
        return [all, little]
    }

    /// Apple tries a payment of a term for longer, which lookups do not know.
    @Test(
        "No check after an end is planned later than stated, whether a payment of a term failed or another one",
        arguments: [State.billingRetry, .expired, .revoked], [false, true])
    func noCheckAfterAnEndIsPlannedLaterThanStated(state: State, isMonthly: Bool) throws {
        let policy = standardPolicy
        for quarter in 0..<520 {
            let now = day(Double(quarter) / 4)
            let input = ScheduleInput(
                state: state, reason: state == .revoked ? .refund : .billingError, since: day(0), until: nil,
                accessEndsAt: nil, expiresAt: day(0), headStartsAt: day(-30), renewalExpected: false, mayRecover: true,
                isMonthly: isMonthly)
            let plan = nextCheck(for: [input], environment: .production, now: now, seed: 7, policy: policy)
            guard case .at(let next) = plan else { continue }
            let known = FreshnessInput(
                state: state, reason: input.reason, answeredAt: now, expiresAt: input.expiresAt, since: input.since,
                chargedAt: input.headStartsAt, isRenewalOff: false)
            guard let limit = ageLimit(of: known, environment: .production, policy: policy) else { continue }
            #expect(next - now <= limit, "day \(Double(quarter) / 4)")
        }
    }

    @Test("Each state has its bound")
    func aBoundForEachState() {
        let (now, policy) = (day(100), standardPolicy)
        /// In hours.
        func limit(
            _ state: State, end: Double?, charged: Double? = nil, since: Double? = nil, stretch: Int = 1,
            off: Bool? = nil
        ) -> Double? {
            var policy = policy
            policy.sweepStretch = stretch
            let input = FreshnessInput(
                state: state, reason: nil, answeredAt: now, expiresAt: end.map { day($0) },
                since: since.map { day($0) },
                chargedAt: charged.map { day($0) }, isRenewalOff: off)
            return ageLimit(of: input, environment: .production, policy: policy)
                .map { Double($0.milliseconds) / 3_600_000 }
        }
        #expect([99, 80, 30, 1].map { limit(.active, end: 400, charged: $0) } == [108, 252, 336, 816])
        #expect([99, 80, 30, 1].map { limit(.active, end: 400, charged: $0, stretch: 2) } == [216, 432, 576, 1_536])
        #expect(limit(.active, end: nil) == 816)
        #expect(limit(.active, end: 100) == 150.0 / 3_600)
        #expect(limit(.awaitingRenewal, end: 100) == 0.05)
        #expect(limit(.awaitingRenewal, end: 99) == 6.3)
        #expect(limit(.gracePeriod, end: 99) == 6.3)
        #expect(limit(.billingRetry, end: 80) == 48.5)
        #expect([nil, true, false].map { limit(.revoked, end: 130, since: 90, off: $0) } == [168.5, 168.5, 168.5])
        #expect([nil, true].map { limit(.revoked, end: 101, since: 90, off: $0) } == [168.5, 168.5])
        #expect(limit(.revoked, end: 101, since: 90, off: false) == 86_550.0 / 3_600)
        #expect([100, 80, 30].map { limit(.revoked, end: $0, since: 90, off: false) } == [0.05, 24.5, 168.5])
        #expect(limit(.expired, end: 95) == 48.5)
        #expect(limit(.expired, end: -300) == nil)
    }
}
