import Subscriptions
import Testing

/// Mistakes that trackers of subscriptions have made in public, by the number of the project's bug catalogue.
@Suite("Public mistakes of other trackers do not happen here") struct BugCatalogueTests {
    private func look(_ slice: SubscriptionEvidence, policy: Policy = strictPolicy) -> Verdict {
        verdict(of: SubscriptionFacts(slice), at: slice.asOf, policy: policy)
    }

    @Test("1: the order of rows means nothing")
    func order() {
        let rows = [row("1", 0, 30), row("2", 30, 60), row("3", 60, 90)]
        for rows in [rows, rows.reversed(), [rows[1], rows[2], rows[0]]] {
            #expect(look(answer(70, rows, renewal())).expiresAt == day(90))
        }
    }

    @Test("2: no subscription expires because Apple did not answer")
    func silence() {
        let state = reconcile(nil, with: answer(1, [row("1", 0, 30)], renewal()), policy: standardPolicy).state
        #expect(state.timeline.span(at: day(45))?.entitled == false, "the table alone would end it")
        #expect(state.outageAllowance.applies(at: day(45), asOf: state.asOf, policy: standardPolicy))
    }

    @Test("7: a refund counts in whichever list it stands")
    func refundInEitherList() {
        let device = row("1", 0, 30, asOf: 10, cancelled: 9, source: .deviceReceipt)
        #expect(look(answer(10, [row("1", 0, 30, cancelled: 9)])).reason == .refund)
        #expect(look(answer(11, [device])).reason == .refund)
        let known = answer(1, [row("1", 0, 30)], renewal())
        #expect(kinds(settle([known, answer(11, [device])]).events).last == "refund.granted")
        let lagging = answer(12, [row("1", 0, 30, asOf: 0.5, cancelled: 0.4, source: .deviceReceipt)])
        #expect(kinds(settle([known, lagging]).events).last == "", "a snapshot older than Apple's word does not")
    }

    @Test("8: a customer who switches renewal off keeps the paid period")
    func switchedOff() { #expect(look(answer(10, [row("1", 0, 30)], renewal(false))).entitledUntil == day(30)) }

    @Test("9: the refund of one old month does not end the subscription")
    func oldRefund() {
        #expect(look(answer(40, [row("1", 0, 30, cancelled: 20), row("2", 30, 60)])).state == .active)
    }

    @Test("10: a replaced yearly period is not alive beside its successor")
    func replacedYear() {
        let rows = [row("1", 0, 365, product: "yearly", cancelled: 10, upgraded: true), row("2", 10, 40)]
        let after = look(answer(50, rows, renewal(false, intent: "1")))
        #expect(after.state == .expired && after.productID == "monthly")
    }

    @Test("11: grace comes before billing retry")
    func grace() {
        #expect(look(answer(31, [row("1", 0, 30)], renewal(intent: "2", retry: true, grace: 36))).entitled)
    }

    @Test("12: a subscription is checked after day 60 of billing retry")
    func retry() {
        let state = SubscriptionState(
            facts: SubscriptionFacts(answer(31, [row("1", 0, 30)], renewal(retry: true))), policy: standardPolicy,
            version: 1)
        for elapsed in stride(from: 1.0, through: 64, by: 1) {
            let now = day(30 + elapsed)
            guard
                case .at(let next) = nextCheck(
                    for: [state], environment: .production, outcome: .verified, now: now, seed: 1,
                    policy: standardPolicy)
            else {
                Issue.record("no check after day \(elapsed)")
                return
            }
            #expect(next - now <= .hours(51))
        }
    }

    @Test("13: a restore under other transaction ids is no new period")
    func restore() {
        let months = (0..<12).map { row("\($0)", Double($0) * 30, Double($0 + 1) * 30) }
        let restored = months.map { month in
            var month = month
            month.transactionID = TransactionID("r\(month.transactionID.text)")
            return month
        }
        let (state, events) = settle([answer(350, months, renewal()), answer(351, restored, renewal())])
        #expect(kinds(events) == ["subscription.started", ""])
        #expect(state?.periods == 12)
        #expect(state?.facts.periods.first?.transactionIDs.count == 2)
    }

    @Test("14: a renewal is the same subscription, whatever its transaction")
    func chain() {
        let renewed = evidence(31, [row("1", 0, 30), row("2", 30, 60, transaction: "other")])
        #expect(renewed.subscriptions == [subscriptionID])
        let (state, events) = settle([answer(1, [row("1", 0, 30)], renewal()), renewed.slice(of: subscriptionID)])
        #expect(kinds(events) == ["subscription.started", "subscription.renewed"])
        #expect(state?.startedAt == day(0))
    }

    @Test("15: several subscriptions in one receipt stay apart, pending rows are matched")
    func several() {
        var other = row("9", 0, 30, product: "other")
        other.originalTransactionID = "2000"
        let evidence = Evidence(
            environment: .production, asOf: day(31), transactions: [other, row("1", 0, 60)],
            renewals: [
                RenewalRow(
                    path: "pending_renewal_info[0]", asOf: day(31), originalTransactionID: "2000",
                    renewal: renewal(false, product: "other", intent: "1")),
                RenewalRow(
                    path: "pending_renewal_info[1]", asOf: day(31), originalTransactionID: subscriptionID,
                    renewal: renewal()),
            ])
        let states = evidence.subscriptions.map { look(evidence.slice(of: $0)).state }
        #expect(states == [.active, .expired])
    }

    @Test("18: no subscription lapses for minutes while Apple books the renewal")
    func leeway() {
        #expect(look(answer(30.01, [row("1", 0, 30)], renewal()), policy: standardPolicy).entitled)
    }

    @Test("19: an extension is no renewal, 17: and its end is Apple's")
    func extended() {
        let (state, events) = settle([
            answer(1, [row("1", 0, 30)], renewal()), answer(2, [row("1", 0, 37.04167)], renewal()),
        ])
        #expect(kinds(events).last == "subscription.extended")
        #expect(state?.expiresAt == day(37.04167))
    }

    @Test("20, 22: a late old answer neither turns the state back nor repeats an event")
    func lateAnswer() {
        let old = answer(31, [row("1", 0, 30)], renewal(intent: "2", retry: true))
        let new = answer(40, [row("1", 0, 30), row("2", 35, 65)], renewal())
        let (state, events) = settle([answer(1, [row("1", 0, 30)], renewal()), old, new, old, new])
        #expect(
            kinds(events) == ["subscription.started", "billing.retry_entered", "subscription.recovered", "", ""])
        #expect(state?.timeline.span(at: day(40))?.state == .active)
        #expect(state?.asOf == day(40))
    }

    @Test("29: an answer without rows takes nothing away")
    func absence() {
        let (state, events) = settle([answer(1, [row("1", 0, 30)], renewal()), answer(2, [])])
        #expect(state?.periods == 1 && state?.willRenew == true)
        #expect(kinds(events) == ["subscription.started", ""])
    }

    @Test("36: a tester's subscription ends by the sandbox's own clock and is soon left alone")
    func sandbox() {
        let policy = Policy.standard(for: .sandbox)
        let minute = 1.0 / 1440
        let state = reconcile(nil, with: answer(0, [row("1", 0, 5 * minute)], renewal()), policy: policy).state
        #expect(state.timeline.span(at: day(9 * minute))?.entitled == true)
        #expect(state.timeline.span(at: day(11 * minute))?.entitled == false)
        let plan = nextCheck(
            for: [state], environment: .sandbox, outcome: .verified, now: day(9), seed: 1, policy: policy)
        #expect(plan == .retired)
    }

    @Test("37: the end of family sharing has its own reason")
    func family() {
        #expect(look(answer(10, [row("1", 0, 30, cancelled: 9, family: true)])).reason == .family)
    }

    @Test("38: a retry flag without intent is not active")
    func retryWithoutIntent() {
        #expect(look(answer(31, [row("1", 0, 30)], renewal(retry: true))).state == .billingRetry)
    }

    @Test("39: the year 4001 and worse dates are harmless")
    func extremes() {
        var far = row("1", 0, 30)
        far.expiresAt = Instant(iso8601: "4001-01-01T00:00:00Z")
        #expect(look(answer(1, [far])).state == .active)
        for (from, to) in [(Int64.min, Int64.max), (.max, .min), (0, .max), (.min, 0)] {
            var absurd = row("1", 0, 30)
            absurd.purchasedAt = Instant(milliseconds: from)
            absurd.expiresAt = Instant(milliseconds: to)
            let (state, _) = settle([answer(1, [absurd, row("2", 0, 30)], renewal(false)), answer(31, [absurd])])
            guard let state else { continue }
            let plan = nextCheck(
                for: [state], environment: .production, outcome: .verified, now: day(40), seed: 1,
                policy: standardPolicy)
            #expect(plan != .at(day(40)))
        }
    }

    @Test("An outage ends with its allowance and one event")
    func outage() {
        let slice = answer(1, [row("1", 0, 30)], renewal())
        let state = reconcile(nil, with: slice, policy: strictPolicy).state
        #expect(state.outageAllowance.allowanceEnd(policy: strictPolicy) == day(60))
        let silent = SubscriptionEvidence.silence(of: subscriptionID, until: day(60))
        let ended = reconcile(state, with: silent, policy: strictPolicy)
        #expect(ended.events.map(\.kind) == [.subscriptionExpired])
        #expect(!ended.state.outageAllowance.applies(at: day(60), asOf: ended.state.asOf, policy: strictPolicy))
        let back = reconcile(
            ended.state, with: answer(61, [row("1", 0, 30), row("2", 30, 60), row("3", 60, 90)], renewal()),
            policy: strictPolicy)
        #expect(back.events.map(\.kind) == [.subscriptionRenewed, .subscriptionRenewed])
        #expect(back.events.first?.detail["late"] == .flag(true))
    }
}
