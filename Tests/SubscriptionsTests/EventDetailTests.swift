import Subscriptions
import Testing

@Suite("Each event has its details") struct EventDetailTests {
    private func last(_ answers: SubscriptionEvidence...) -> [Event] {
        settle(answers).events.last ?? []
    }

    @Test("First sight reports the past")
    func firstSightTellsOfThePast() {
        let event = last(answer(70, [row("1", 0, 30), row("2", 30, 60)], renewal(false, intent: "1"))).first
        #expect(event?.occurredAt == day(0))
        #expect(event?.detail["periods"] == .integer(2))
        #expect(event?.detail["backfill"] == .flag(true))
        #expect(last(answer(1, [row("1", 0, 30)])).first?.detail["backfill"] == nil)
    }

    @Test("An expiry happens at Apple's instant")
    func expiryHappensAtApplesInstant() {
        let events = last(
            answer(1, [row("1", 0, 30)], renewal()), answer(31, [row("1", 0, 30)], renewal(false, intent: "3")))
        #expect(events.first?.occurredAt == day(30))
        #expect(events.first?.detail["reason"] == .text("price_increase"))
        #expect(events.last?.kind == .autoRenewDisabled)
        #expect(events.last?.occurredAt == day(31))
        #expect(events.last?.detail["not_before"] == .text(day(1).iso8601))
    }

    @Test("Future instants are capped by the answer")
    func futureInstantsAreCappedByTheAnswer() {
        let events = last(
            answer(1, [row("1", 0, 30)], renewal()), answer(29.5, [row("1", 0, 30), row("2", 30, 60)], renewal()))
        #expect(events.map(\.occurredAt) == [day(29.5)])
    }

    @Test("A renewal after a reported expiry is late")
    func aRenewalAfterAReportedExpiryIsLate() {
        let events = last(
            answer(1, [row("1", 0, 30)], renewal()), answer(31, [row("1", 0, 30)], renewal()),
            answer(32, [row("1", 0, 30), row("2", 30, 60)], renewal()))
        #expect(events.map(\.kind) == [.subscriptionRenewed])
        #expect(events.first?.detail["late"] == .flag(true))
    }

    @Test("A gap short enough for a renewal is silent")
    func aGapShortEnoughForARenewalIsSilent() {
        func kindsAfterGap(_ days: Double) -> [String] {
            let answers = [
                answer(1, [row("1", 0, 30)], renewal(false)),
                answer(40, [row("1", 0, 30), row("2", 30 + days, 60)], renewal(false)),
            ]
            return kinds(settle(answers, policy: strictPolicy).events)
        }
        #expect(kindsAfterGap(0.04).last == "subscription.renewed")
        #expect(kindsAfterGap(0.05).last == "subscription.expired subscription.reactivated")
    }

    @Test("An older period is a backfill")
    func anOlderPeriodIsBackfill() {
        let events = last(answer(40, [row("2", 30, 60)]), answer(35, [row("1", 0, 30)]))
        #expect(events.map(\.detail["backfill"]) == [.flag(true)])
    }

    @Test("An upgrade after an early charge is fresh")
    func anUpgradeAfterAnEarlyChargeIsFresh() {
        let first = row("1", 0, 30)
        let events = last(
            answer(1, [first], renewal()), answer(29.5, [first, row("2", 30, 60)], renewal()),
            answer(
                29.8,
                [
                    row("1", 0, 30, cancelled: 29.7, upgraded: true), row("2", 30, 60, cancelled: 29.7, upgraded: true),
                    row("3", 29.7, 394.7, product: "yearly"),
                ], renewal(product: "yearly")))
        #expect(events.map(\.kind) == [.productChanged])
        #expect(events.first?.detail["backfill"] == nil)
    }

    @Test("Grace that ends with the subscription says why")
    func graceThatEndsWithTheSubscriptionSaysWhy() {
        let events = last(
            answer(1, [row("1", 0, 30)], renewal()),
            answer(31, [row("1", 0, 30)], renewal(intent: "2", retry: true, grace: 46)),
            answer(95, [row("1", 0, 30)], renewal(true, intent: "2", retry: false, grace: 46)))
        #expect(events.map(\.kind) == [.billingGraceExpired])
        #expect(events.first?.occurredAt == day(46))
        #expect(events.first?.detail["reason"] == .text("billing_error"))
    }

    @Test("A change names both products")
    func aChangeNamesBothProducts() {
        let events = last(
            answer(1, [row("1", 0, 30)], renewal()),
            answer(31, [row("1", 0, 30), row("2", 30, 37, product: "weekly")], renewal(product: "weekly")))
        #expect(events.first?.detail["from_product_id"] == .text("monthly"))
        #expect(events.first?.detail["to_product_id"] == .text("weekly"))
        #expect(events.map(\.productID) == ["weekly", "weekly"])
    }

    @Test("A suspected shrink keeps the state, and waits for a second answer")
    func aSuspectedShrinkKeepsTheState() {
        let (state, _) = settle([
            answer(1, [row("1", 0, 30)], renewal()), answer(10, [row("1", 0, 20)], renewal()),
        ])
        #expect(state?.expiresAt == day(30))
        #expect(state?.retractions == [Retraction(of: "t1", .end, end: day(20), since: day(10))])
        let again = answer(10.1, [row("1", 0, 20)], renewal())
        #expect(state?.doubts(in: again) == true)
        #expect(state?.doubts(in: answer(10.1, [row("2", 30, 60)], renewal())) == false, "silence says nothing")
    }

    @Test("Leeway is part of the state")
    func leewayIsPartOfTheState() {
        let slice = answer(1, [row("1", 0, 30)], renewal())
        let state = reconcile(nil, with: slice, policy: standardPolicy).state
        let stricter = reconcile(state, with: slice, policy: strictPolicy)
        #expect(stricter.changed && stricter.events.isEmpty && stricter.state.leeway == .zero)
    }
}
