import SeededRandom
import Subscriptions
import Testing

@Suite("Consumers of events may rely on their order and kinds") struct EventRuleTests {
    private static let continuations: Set<EventKind> = [
        .trialConverted, .subscriptionRenewed, .subscriptionRecovered, .subscriptionReactivated,
    ]

    @Test("A change that took place is not withdrawn, although Apple still reports the renewal before it")
    func reportedLate() {
        let (month, week) = (row("1", 0, 30), row("2", 30, 37, product: "weekly"))
        let rows = [month, week, row("3", 37, 402, product: "yearly")]
        let (_, events) = settle([
            answer(1, [month], renewal(to: "weekly")), answer(45, rows, renewal(to: "weekly")),
            answer(46, rows, renewal(product: "yearly")),
        ])
        #expect(
            kinds(events) == [
                "subscription.started",
                "product.changed subscription.renewed product.changed subscription.renewed", "",
            ])
    }

    @Test("The refund of a replaced period is reported once; the repayment for the replacement never is")
    func refundOfAReplacedPeriod() {
        func said(_ asOf: Double, cancelled: Double, percentage: Int?) -> SubscriptionEvidence {
            var month = row("1", 0, 30, cancelled: cancelled, upgraded: true)
            month.revocationPercentage = percentage
            return answer(asOf, [month, row("2", 10, 375, product: "yearly")], renewal(product: "yearly"))
        }
        let upgraded = [answer(1, [row("1", 0, 30)], renewal()), said(11, cancelled: 10, percentage: 66_667)]
        for (date, percentage, expected) in [
            (49.0, 100_000 as Int?, "refund.granted"), (15, 100_000, "refund.granted"), (5, 100_000, "refund.granted"),
            (10, 100_000, ""), (49, 66_667, ""), (49, nil, ""),
        ] {
            let refunded = [said(50, cancelled: date, percentage: percentage)]
            let (state, events) = settle(upgraded + refunded + [said(51, cancelled: date, percentage: percentage)])
            #expect(kinds(events) == ["subscription.started", "product.changed", expected, ""], "\(date)")
            #expect(events[2].allSatisfy { $0.occurredAt == day(date) && $0.productID == "monthly" })
            #expect(state?.timeline.span(at: day(20))?.productID == "yearly", "the refund changes no access")
            for stated in [66_667, nil] where expected == "refund.granted" {
                func back(_ asOf: Double) -> SubscriptionEvidence { said(asOf, cancelled: 10, percentage: stated) }
                for held in [[back(52)], [back(50.001), back(50.002)]] {
                    let (state, events) = settle(upgraded + refunded + held)
                    #expect(kinds(events).last == "", "one answer takes nothing back, \(date)")
                    let period = state?.facts.periods.first
                    #expect(period?.cancelledAt == day(date) && period?.details.revocationPercentage?.value == 100_000)
                }
                let (state, events) = settle(upgraded + refunded + [back(52), back(53), back(54)])
                #expect(Array(kinds(events).suffix(3)) == ["", "refund.reversed", ""], "\(date)")
                let period = state?.facts.periods.first
                #expect(period?.cancelledAt == day(10) && period?.details.revocationPercentage?.value == stated)
            }
        }
    }

    @Test("Each new period yields one kind or only a change")
    func eachNewPeriodYieldsOneKindOrOnlyAChange() {
        for offset in 0..<UInt64(1_500) {
            var random = Seeded(seed: 31_000_000 + offset)
            let answers =
                Bool.random(using: &random)
                ? Life(using: &random).answers(upTo: 8, using: &random) : RandomLife.answers(using: &random)
            var state: SubscriptionState?
            for answer in answers {
                let result = reconcile(state, with: answer, policy: strictPolicy)
                if let state { expectOneKindForEachNewPeriod(since: state, result, random) }
                state = result.state
            }
        }
    }

    private func expectOneKindForEachNewPeriod(
        since before: SubscriptionState, _ result: Reconciled, _ random: Seeded
    ) {
        var kinds: [DetailValue: [EventKind]] = [:]
        for event in result.events where Self.continuations.contains(event.kind) || event.kind == .productChanged {
            guard let id = event.detail["transaction_id"] else {
                Issue.record("\(event) names no period, \(random)")
                continue
            }
            kinds[id, default: []].append(event.kind)
        }
        for period in result.state.facts.periods {
            let reported = period.transactionIDs.min().flatMap { kinds.removeValue(forKey: .text($0.text)) } ?? []
            if before.facts.periods.contains(where: { $0.isSame(as: period) }) {
                #expect(reported == [], "\(period) was known, \(random)")
                continue
            }
            let isOne = reported.count == 1 || reported.count == 2 && reported[0] == .productChanged
            #expect(
                isOne && reported.count { Self.continuations.contains($0) } <= 1, "\(reported) of \(period), \(random)")
        }
        #expect(kinds.isEmpty, "\(kinds) of no period, \(random)")
    }

    @Test("Events are in order")
    func eventsAreInOrder() {
        for offset in 0..<UInt64(800) {
            var random = Seeded(seed: 32_000_000 + offset)
            var state: SubscriptionState?
            for answer in RandomLife.answers(using: &random) + Life(using: &random).answers(upTo: 6, using: &random) {
                let result = reconcile(state, with: answer, policy: standardPolicy)
                let instants = result.events.map(\.occurredAt)
                #expect(instants == instants.sorted(), "\(result.events), \(random)")
                state = result.state
            }
        }
    }

    /// The same answers in order, however many were missed: who adds events up knows the state.
    @Test("The events add up to the state")
    func whatIsToldAddsUpToTheState() {
        var compared: [State: Int] = [:]
        lives(1_500, seed: 33) { life, random in
            var state: SubscriptionState?
            var listener: Listener?
            for answer in life.answers(upTo: 8, using: &random) {
                let result = reconcile(state, with: answer, policy: strictPolicy)
                state = result.state
                guard let span = result.state.timeline.span(at: result.state.asOf) else { continue }
                guard var known = listener else {
                    listener = Listener(state: span.state, of: result.state.facts.periods)
                    continue
                }
                for event in result.events {
                    if let wrong = known.hear(event, of: result.state) { Issue.record("\(wrong), \(random)") }
                }
                known.noticeSilence(span.state)
                #expect(known.state == span.state, "\(result.events.map(\.kind)), \(random)")
                compared[span.state, default: 0] += 1
                listener = known
            }
        }
        for state in State.allCases where state != .awaitingRenewal {
            #expect(compared[state, default: 0] > 50, "\(state) was hardly reached: \(compared)")
        }
    }
}

/// A consumer who knows a subscription by its events alone.
private struct Listener {
    var state: State
    /// When the last period heard of starts; a refund of an older one changes nothing.
    private var lastStart: Instant
    /// What it was before the last period heard of.
    private var previous: State
    /// The last period heard of was refunded before it began.
    private var mayBeRevoked: Bool
    /// A correction of an older period said what holds in the end, not what held before the next period.
    private var isCorrected = false

    init(state: State, of periods: [Period]) {
        (self.state, previous) = (state, state)
        let last = periods.last { !$0.gaveWay }
        lastStart = last?.purchasedAt ?? day(0)
        mayBeRevoked = state == .active && last?.isRefunded == true
    }

    private mutating func begin(_ period: Period?) {
        guard let period, !period.gaveWay else { return }
        // A change of product and what it comes with tell of one period.
        if period.purchasedAt != lastStart { previous = mayBeRevoked ? .revoked : state }
        (state, lastStart, mayBeRevoked) = (.active, period.purchasedAt, false)
    }

    /// Takes note of an event; says what is wrong with it.
    mutating func hear(_ event: Event, of reported: SubscriptionState) -> String? {
        let period = reported.facts.periods.first { period in
            period.transactionIDs.min().map { event.detail["transaction_id"] == .text($0.text) } ?? false
        }
        let isNews = event.detail["backfill"] == nil
        switch event.kind {
        case .subscriptionReactivated, .subscriptionRecovered:
            guard isNews else { return nil }
            begin(period)
            defer { isCorrected = false }
            return previous == .active && !isCorrected ? "\(event.kind) of an active one" : nil
        case .subscriptionRenewed, .trialConverted, .productChanged:
            if isNews { begin(period) }
        case .subscriptionExpired, .trialExpired:
            defer { state = .expired }
            return state == .revoked ? "expired after a refund" : nil
        case .billingGraceEntered: state = .gracePeriod
        case .billingRetryEntered: state = .billingRetry
        case .billingGraceExpired: state = event.detail["reason"] == nil ? .billingRetry : .expired
        case .refundGranted, .familyRevoked:
            guard let period, period.purchasedAt >= lastStart else { return nil }
            if period.purchasedAt > reported.asOf { mayBeRevoked = true } else { state = .revoked }
        case .refundReversed, .subscriptionExtended, .subscriptionShortened:
            (state, isCorrected) = (reported.timeline.span(at: reported.asOf)?.state ?? state, true)
        case .subscriptionStarted, .trialStarted, .autoRenewDisabled, .autoRenewEnabled, .productChangeScheduled,
            .productChangeWithdrawn, .priceIncreasePending, .priceIncreaseAccepted, .purchaseMade, .purchaseRefunded,
            .ownershipAssigned, .ownershipTransferred, .entitlementsChanged:
            break
        }
        return nil
    }

    /// What happens without an event: a renewal is awaited, a period refunded before it began does not begin.
    mutating func noticeSilence(_ now: State) {
        if now == .awaitingRenewal || mayBeRevoked && now == .revoked { state = now }
    }
}

extension Period {
    /// Charged ahead of time and replaced before it began.
    fileprivate var gaveWay: Bool { isUpgraded && cancelledAt.map { $0 < purchasedAt } ?? false }

    /// Whether it is a known period, by its line item, else by a shared transaction.
    fileprivate func isSame(as later: Period) -> Bool {
        guard let line = webOrderLineItemID else { return !transactionIDs.isDisjoint(with: later.transactionIDs) }
        return line == later.webOrderLineItemID
    }
}
