import SeededRandom
import Testing

@testable import Subscriptions

@Suite("Every state has its next check") struct ScheduleTests {
    private func plan(
        _ slice: SubscriptionEvidence, now: Double, environment: StoreEnvironment = .production, seed: UInt64 = 3,
        speedup: Int = 1
    ) -> CheckPlan {
        let policy = Policy.standard(for: environment, speedup: speedup)
        let state = SubscriptionState(facts: SubscriptionFacts(slice), policy: policy, version: 1)
        return nextCheck(
            for: [state], environment: environment, outcome: .verified, now: day(now), seed: seed, policy: policy)
    }

    /// Hours from `now` to the plan; nil when retired.
    private func hours(_ plan: CheckPlan, from now: Double) -> Double? {
        switch plan {
        case .at(let instant): Double((instant - day(now)).milliseconds) / 3_600_000
        case .retired: nil
        }
    }

    static let rows: [(String, SubscriptionEvidence, Double, ClosedRange<Double>?)] = {
        let month = row("1", 0, 30)
        let year = row("1", 0, 365)
        let refunded = row("1", 0, 30, cancelled: 9)
        return [
            ("refund sweep of a young charge", answer(1, [month], renewal()), 1, 72...76),
            ("refund sweep of an old charge", answer(100, [year], renewal()), 100, 720...721),
            ("the check before T serves for the sweep", answer(26, [month], renewal()), 26, 94.5...95.5),
            ("not when it is far", answer(16, [month], renewal()), 16, 168...176),
            ("nor more than four days after it", answer(325, [year], renewal()), 325, 720...721),
            ("shortly before T", answer(29, [month], renewal()), 29, 22.5...23.5),
            ("after T, already asked before it", answer(29.99, [month], renewal()), 29.99, 0.26...0.27),
            ("will not renew", answer(29, [month], renewal(false)), 29, 24.025...24.042),
            ("unknown outcome", answer(30, [month], renewal()), 30, 0.025...0.025),
            ("unknown outcome, later", answer(30.002, [month], renewal()), 30.002, 0.02...0.03),
            ("past the leeway, daily", answer(33, [month], renewal()), 33, 24...25),
            ("retry, first day", answer(30.1, [month], renewal(retry: true)), 30.1, 1...1.06),
            ("retry, day 4", answer(34, [month], renewal(retry: true)), 34, 24...25.3),
            ("retry, day 20", answer(50, [month], renewal(retry: true)), 50, 48...49),
            ("retry, day 70", answer(100, [month], renewal(retry: true)), 100, 479...481),
            ("grace without a date", answer(40, [month], renewal(retry: true, graceByStatus: true)), 40, 6...6),
            ("… of a day", answer(31, [month], renewal(retry: true, graceByStatus: true)), 31, 6...6),
            ("a failed payment, not yet given up", answer(34, [month], renewal(false, intent: "2")), 34, 24...25.3),
            ("the same, day 20", answer(50, [month], renewal(false, intent: "2")), 50, 48...49),
            ("the same, before a day of all that expired", answer(59, [month], renewal(intent: "2")), 59, 24...24.5),
            ("the same, day 70", answer(100, [month], renewal(intent: "2")), 100, 479...481),
            ("given up", answer(50, [month], renewal(false, intent: "2", retry: false)), 50, 239...241),
            ("end of grace", answer(45.9, [month], renewal(retry: true, grace: 46)), 45.9, 2.41...2.46),
            ("revoked", answer(10, [row("1", 0, 30, cancelled: 9)], renewal()), 10, 168...169),
            ("revoked, the next charge is close", answer(29, [refunded], renewal()), 29, 24.025...24.025),
            ("revoked, nothing said of renewal", answer(29, [refunded], renewal(nil)), 29, 24.025...24.025),
            ("revoked, renewal off", answer(29, [refunded], renewal(false)), 29, 168...169),
            ("revoked, charged or not", answer(30.002, [refunded], renewal()), 30.002, 0.02...0.03),
            ("revoked, still not charged", answer(31, [refunded], renewal()), 31, 24...24.5),
            ("revoked, not charged at all", answer(100, [refunded], renewal()), 100, 479...481),
            ("expired", answer(31, [month], renewal(false, intent: "1")), 30.5, 12...12.51),
            ("expired for a month", answer(62, [month], renewal(false, intent: "1")), 62, 671...673),
            ("expired for a year", answer(400, [month], renewal(false, intent: "1")), 400, nil),
        ]
    }()

    @Test("Each situation has its next check", arguments: rows.indices)
    func eachSituation(_ index: Int) {
        let (name, slice, now, expected) = Self.rows[index]
        let found = hours(plan(slice, now: now), from: now)
        #expect(
            found.map { expected?.contains($0) ?? false } ?? (expected == nil), "\(name): \(String(describing: found))")
    }

    @Test("Refunds may be looked for half as often")
    func refundsMayBeLookedForHalfAsOften() {
        let slice = answer(100, [row("1", 0, 365)], renewal())
        var policy = Policy.standard(for: .production)
        policy.sweepStretch = 2
        let state = SubscriptionState(facts: SubscriptionFacts(slice), policy: policy, version: 1)
        let relaxed = nextCheck(
            for: [state], environment: .production, outcome: .verified, now: day(100), seed: 3, policy: policy)
        #expect(hours(relaxed, from: 100).map { (1_440...1_441).contains($0) } == true)
        let ending = answer(29, [row("1", 0, 30)], renewal(false))
        let soon = nextCheck(
            for: [SubscriptionState(facts: SubscriptionFacts(ending), policy: policy, version: 1)],
            environment: .production, outcome: .verified, now: day(29), seed: 3, policy: policy)
        #expect(soon == plan(ending, now: 29))
    }

    @Test("A held subscription is asked about every quarter of an hour")
    func heldIsAskedAboutEveryQuarterOfAnHour() {
        let found = hours(plan(answer(10, [row("1", 0, 30)], renewal()), now: 35), from: 35)
        #expect(found == 0.25)
    }

    @Test("The lead is at most a tenth of the period")
    func theLeadIsAtMostATenthOfThePeriod() {
        let hour = row("1", 0, 1.0 / 24)
        let found = hours(plan(answer(0.001, [hour], renewal()), now: 0.001), from: 0)
        #expect(found.map { $0 >= 0.9 && $0 < 1 } == true)
    }

    /// Minutes before the end at which each of many receipts is asked about; the test's day 0 is given.
    private func leads(endingAt end: Instant, spread: Delay) -> [Double] {
        var policy = standardPolicy
        policy.preCheckSpread = spread
        let input = ScheduleInput(
            state: .active, reason: nil, since: end - .days(30), until: end, accessEndsAt: end, expiresAt: end,
            headStartsAt: end - .days(30), renewalExpected: true)
        return (0..<300).compactMap { (seed: UInt64) -> Double? in
            let plan = nextCheck(
                for: [input], environment: .production, now: end - .days(1), seed: seed, policy: policy)
            guard case .at(let instant) = plan else { return nil }
            return Double((end - instant).milliseconds) / 60_000
        }
    }

    @Test(
        "Checks before an end are spread, and more so at the turn of a month",
        arguments: [
            ("2026-03-17T10:00:00Z", 10.0), ("2026-02-28T10:00:00Z", 60), ("2026-03-01T10:00:00Z", 60),
            ("2026-03-31T23:59:59Z", 60), ("2026-03-30T23:59:59Z", 10), ("2024-02-28T10:00:00Z", 10),
        ])
    func checksBeforeAnEndAreSpreadAndMoreSoAtTheTurnOfAMonth(end: String, minutes: Double) throws {
        let end = try #require(Instant(iso8601: end))
        let leads = leads(endingAt: end, spread: standardPolicy.preCheckSpread)
        #expect(leads.count == 300)
        #expect(leads.allSatisfy { (30...(30 + minutes)).contains($0) })
        #expect((leads.max() ?? 0) - (leads.min() ?? 0) > minutes * 0.9)
    }

    @Test("An app may spread them further")
    func anAppMaySpreadThemFurther() throws {
        let end = try #require(Instant(iso8601: "2026-03-17T10:00:00Z"))
        let leads = leads(endingAt: end, spread: .hours(5))
        #expect((leads.max() ?? 0) > 300)
        #expect((leads.max() ?? 0) <= 330)
    }

    @Test("No answer of an active subscription gets older than stated")
    func noAnswerOfAnActiveSubscriptionGetsOlderThanStated() {
        var random = Seeded(seed: 20_261_121)
        for _ in 0..<2000 {
            let age = Int64.random(in: 0...400, using: &random)
            let now = day(500)
            let end = now + .days(Int64.random(in: 1...400, using: &random))
            let input = ScheduleInput(
                state: .active, reason: nil, since: now - .days(age), until: end, accessEndsAt: end, expiresAt: end,
                headStartsAt: now - .days(age), renewalExpected: Bool.random(using: &random))
            let plan = nextCheck(
                for: [input], environment: .production, now: now, seed: random.next(), policy: standardPolicy)
            let stated: Int64 = age < 14 ? 5 : age < 60 ? 11 : age < 90 ? 15 : 36
            guard case .at(let next) = plan else {
                Issue.record("an active subscription is asked about no more")
                continue
            }
            #expect(next <= min(now + .days(stated), end + .seconds(150)))
        }
    }

    @Test("The sandbox is asked soon, then daily for a week")
    func sandboxAsksSoonThenDailyForAWeek() {
        let slice = answer(0.001, [row("1", 0, 1)], renewal())
        #expect(
            hours(plan(slice, now: 0.5, environment: .sandbox), from: 1).map { $0 * 3600 >= 15 && $0 * 3600 < 16 }
                == true)
        #expect(hours(plan(slice, now: 1.5, environment: .sandbox), from: 1).map { $0 >= 24 && $0 < 26 } == true)
        #expect(plan(slice, now: 9, environment: .sandbox) == .retired)
    }

    @Test("A next check is never in the past, never too soon, and deterministic")
    func neverInThePastNeverTooSoonAndDeterministic() {
        var random = Seeded(seed: 99)
        for _ in 0..<500 {
            let facts = RandomLife.facts(using: &random)
            let speedup = [1, 60, 100_000].randomElement(using: &random) ?? 1
            let policy = Policy.standard(for: .production, speedup: speedup)
            let state = SubscriptionState(facts: facts, policy: policy, version: 1)
            let now = facts.asOf + .days(Int64.random(in: 0...500, using: &random))
            let seed = random.next()
            let plans = (0..<2).map { _ in
                nextCheck(
                    for: [state], environment: .production, outcome: .verified, now: now, seed: seed, policy: policy)
            }
            #expect(plans[0] == plans[1], "\(random)")
            if case .at(let instant) = plans[0] {
                #expect(instant >= now + Delay(milliseconds: 250), "\(random)")
                #expect(instant <= now + .days(400), "\(random)")
            }
        }
    }

    @Test("The speedup divides delays and not Apple's dates")
    func speedupDividesDelaysNotApplesDates() {
        let slice = answer(29.999, [row("1", 0, 30)], renewal(false))
        let found = hours(plan(slice, now: 29.999, speedup: 60), from: 30)
        #expect(found.map { $0 * 3600 >= 1.5 && $0 * 3600 <= 2.5 } == true)
    }

    @Test("Outcomes without knowledge have their delays")
    func outcomesWithoutKnowledge() {
        func hoursAfter(_ outcome: CheckOutcome, _ attempts: Int) -> Double? {
            hours(
                nextCheck(
                    for: [], environment: .production, outcome: outcome, now: day(10), seed: 5, attempts: attempts,
                    policy: standardPolicy), from: 10)
        }
        let empty = (1...4).map { hoursAfter(.verified, $0).map { Int($0) } }
        #expect(empty == [1, 24, 168, nil] || empty == [1, 25, 168, nil])
        for kind in Refusal.Kind.allCases {
            let tries = (1...3).map { hoursAfter(.rejected(kind, since: day(9), wasVerified: false), $0) != nil }
            let isRetired = !tries[2]
            #expect(tries[0] && tries[1])
            switch kind {
            case .otherBundle, .notAuthentic, .wrongEnvironment, .badRequest: #expect(isRetired)
            case .wrongSecret, .accountGone, .unknownTransaction: #expect(!isRetired)
            }
        }
        let unknown = (1...5).map { hoursAfter(.rejected(.unknownTransaction, since: day(9), wasVerified: false), $0) }
        #expect(unknown.prefix(3).map { Int((($0 ?? 0) * 60 / 5).rounded()) } == [0, 1, 6])
        #expect(unknown[3].map { Int($0) } == 24 && unknown[4] == nil)
        let refusedSecret = hoursAfter(.rejected(.wrongSecret, since: day(9), wasVerified: true), 1).map { $0 * 60 }
        #expect(refusedSecret.map { (5...5.25).contains($0) } == true, "as long as the app pauses")
        #expect(
            hoursAfter(.rejected(.accountGone, since: day(7), wasVerified: false), 3) == nil,
            "three equal ones over 72 hours")
    }

    @Test("A receipt Apple vouched for is only suspect for three days")
    func aReceiptAppleVouchedForIsOnlySuspectForThreeDays() {
        let state = SubscriptionState(
            facts: SubscriptionFacts(answer(1, [row("1", 0, 30)])), policy: standardPolicy, version: 1)
        func next(since: Double) -> CheckPlan {
            nextCheck(
                for: [state], environment: .production,
                outcome: .rejected(.notAuthentic, since: day(since), wasVerified: true),
                now: day(10),
                seed: 5, attempts: 3, policy: standardPolicy)
        }
        #expect(next(since: 9) != .retired)
        #expect(next(since: 7) == .retired)
    }

    @Test("Failures back off with full jitter")
    func failuresBackOffWithFullJitter() {
        for (new, most) in [(true, Delay.minutes(5)), (false, .hours(1))] {
            var longest = Delay.zero
            for seed in UInt64(0)..<300 {
                let delay = retryDelay(afterFailures: 20, new: new, seed: seed, policy: standardPolicy)
                #expect(delay == retryDelay(afterFailures: 20, new: new, seed: seed, policy: standardPolicy))
                #expect(delay >= Delay(milliseconds: 250) && delay < most)
                longest = max(longest, delay)
                #expect(retryDelay(afterFailures: 1, new: new, seed: seed, policy: standardPolicy) < .seconds(30))
            }
            #expect(longest > Delay(milliseconds: most.milliseconds * 9 / 10))
        }
    }

    @Test("Purchases are swept for ninety days")
    func purchasesAreSweptForNinetyDays() {
        let made = TransactionRow(
            path: "receipt.in_app[0]", source: .deviceReceipt, asOf: day(0), transactionID: "a",
            originalTransactionID: "a", productID: "coins", purchasedAt: day(0))
        let slice = PurchaseEvidence(
            key: PurchaseKey(originalTransactionID: "a", productID: "coins"), asOf: day(0), transactions: [made])
        guard let state = reconcilePurchase(nil, with: slice)?.state else {
            Issue.record("a purchase has a state")
            return
        }
        func next(_ now: Double, _ environment: StoreEnvironment) -> CheckPlan {
            nextCheck(
                for: [], purchases: [state], environment: environment, outcome: .verified, now: day(now), seed: 1,
                policy: standardPolicy)
        }
        #expect(hours(next(1, .production), from: 1).map { $0 >= 72 } == true)
        #expect(next(91, .production) == .retired)
        #expect(next(1, .sandbox) == .retired)
    }
}
