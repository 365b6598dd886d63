import SeededRandom
@testable import Subscriptions
import Testing

@Suite("A timeline has one state at every instant") struct TimelineTests {
    static let drawings: [(String, SubscriptionEvidence, Policy, String)] = [
        (
            "a customer who stays", answer(10, [row("1", 0, 30)], renewal()), standardPolicy,
            "0 active monthly | 30 awaiting_renewal/renewal monthly | 30.083 expired/unknown monthly"
        ),
        (
            "a customer who leaves", answer(10, [row("1", 0, 30)], renewal(false)), standardPolicy,
            "0 active monthly | 30 expired/voluntary monthly"
        ),
        (
            "grace, then retry without end",
            answer(31, [row("1", 0, 30)], renewal(intent: "2", retry: true, grace: 46)), standardPolicy,
            "0 active monthly | 30 grace_period monthly | 46 billing_retry monthly"
        ),
        (
            "a refunded month between two others",
            answer(70, [row("1", 0, 30), row("2", 30, 60, cancelled: 40), row("3", 60, 90)], renewal()), strictPolicy,
            "0 active monthly | 30 active monthly | 40 revoked/refund monthly | 60 active monthly"
                + " | 90 expired/unknown monthly"
        ),
        (
            "a refunded year, a month, and a refunded month after it",
            answer(
                75,
                [row("1", 0, 365, product: "yearly", cancelled: 1), row("2", 10, 40), row("3", 60, 90, cancelled: 70)],
                renewal(false)), standardPolicy,
            "0 active yearly | 1 revoked/refund yearly | 10 active monthly | 40 awaiting_renewal/renewal monthly"
                + " | 40.083 expired/unknown monthly | 60 active monthly | 70 revoked/refund monthly"
        ),
        (
            "a year replaced by a month, refunded when that was over",
            answer(
                80, [row("1", 0, 365, product: "yearly", cancelled: 70, upgraded: true), row("2", 10, 40)],
                renewal(false)), strictPolicy,
            "0 active yearly | 10 active monthly | 40 expired/voluntary monthly"
        ),
        (
            "a refund after the end",
            answer(50, [row("1", 0, 30, cancelled: 45)], renewal(false, intent: "1")), strictPolicy,
            "0 active monthly | 30 expired/voluntary monthly | 45 revoked/refund monthly"
        ),
        (
            "an upgrade at once",
            answer(
                20, [row("1", 0, 30, cancelled: 10, upgraded: true), row("2", 10, 375, product: "yearly")],
                renewal(product: "yearly")), strictPolicy,
            "0 active monthly | 10 active yearly | 375 expired/unknown yearly"
        ),
        (
            "an upgrade without date",
            answer(
                20, [row("1", 0, 365, product: "yearly", upgraded: true), row("2", 10, 40)], renewal(false)),
            strictPolicy, "0 active yearly | 10 active monthly | 40 expired/voluntary monthly"
        ),
        (
            "an upgrade of a charged renewal, itself replaced without a date",
            answer(
                50,
                [
                    row("1", 0, 30, cancelled: 29.5, upgraded: true), row("2", 30, 60, cancelled: 29.5, upgraded: true),
                    row("3", 29.5, 394.5, product: "yearly", upgraded: true), row("4", 40, 405, product: "plus"),
                ], renewal(false, product: "plus")), strictPolicy,
            "0 active monthly | 29.5 active yearly | 40 active plus | 405 expired/voluntary plus"
        ),
        (
            "a renewal charged ahead", answer(29.5, [row("1", 0, 30), row("2", 30, 60)], renewal(false)), strictPolicy,
            "0 active monthly | 29.5 active monthly +future_dated | 30 active monthly | 60 expired/voluntary monthly"
        ),
        (
            "a gap that no answer tells about",
            answer(70, [row("1", 0, 30), row("2", 50, 80)], renewal(false)), standardPolicy,
            "0 active monthly | 30 awaiting_renewal/renewal monthly | 30.083 expired/unknown monthly"
                + " | 50 active monthly | 80 expired/voluntary monthly"
        ),
    ]

    @Test("A timeline draws what happened", arguments: drawings.indices)
    func drawsWhatHappened(_ index: Int) {
        let (name, evidence, policy, expected) = Self.drawings[index]
        let timeline = Timeline(of: SubscriptionFacts(evidence), policy: policy)
        #expect(drawing(timeline) == expected, "\(name)")
    }

    @Test("The past keeps what was learnt")
    func thePastKeepsWhatWasLearnt() {
        let facts = SubscriptionFacts(answer(31, [row("1", 0, 30)], renewal(intent: "2", retry: true, grace: 36)))
            .adding(answer(41, [row("1", 0, 30), row("2", 40, 70)], renewal()))
        let timeline = Timeline(of: facts, policy: strictPolicy)
        #expect(
            drawing(timeline)
                == "0 active monthly | 30 grace_period monthly | 36 billing_retry monthly | 40 active monthly"
                + " | 70 expired/unknown monthly")
    }

    @Test("A subscription is held only for want of news")
    func heldOnlyForWantOfNews() {
        let table: [(String, SubscriptionEvidence, Policy, Bool, Double?)] = [
            ("renewal expected", answer(10, [row("1", 0, 30)], renewal()), strictPolicy, true, 30),
            ("with leeway", answer(10, [row("1", 0, 30)], renewal()), standardPolicy, true, 30 + 2.0 / 24),
            ("switched off", answer(10, [row("1", 0, 30)], renewal(false)), strictPolicy, false, 30),
            (
                "grace", answer(31, [row("1", 0, 30)], renewal(intent: "2", retry: true, grace: 46)), strictPolicy,
                true, 46
            ),
            (
                "grace, off", answer(31, [row("1", 0, 30)], renewal(false, retry: true, grace: 46)), strictPolicy,
                false, 46
            ),
            ("retry", answer(31, [row("1", 0, 30)], renewal(retry: true)), strictPolicy, false, 30),
            ("refunded", answer(10, [row("1", 0, 30, cancelled: 9)], renewal()), strictPolicy, false, 9),
            (
                "replacement", answer(10, [row("1", 0, 30, cancelled: 9, upgraded: true)], renewal()), strictPolicy,
                true,
                30
            ),
        ]
        for (name, evidence, policy, expected, end) in table {
            let facts = SubscriptionFacts(evidence)
            let hold = OutageAllowance(of: facts, timeline: Timeline(of: facts, policy: policy))
            #expect(hold == OutageAllowance(expected: expected, accessEndsAt: end.map(day)), "\(name)")
        }
    }

    @Test("A hold ends with the allowance or with an answer")
    func holdEndsWithTheAllowanceOrAnAnswer() {
        let facts = SubscriptionFacts(answer(10, [row("1", 0, 30)], renewal()))
        let asked = facts.adding(answer(30, [row("1", 0, 30)], renewal()))
        func isInOutageAllowance(_ facts: SubscriptionFacts, _ now: Double) -> Bool {
            OutageAllowance(of: facts, timeline: Timeline(of: facts, policy: strictPolicy))
                .applies(at: day(now), asOf: facts.asOf, policy: strictPolicy)
        }
        #expect(!isInOutageAllowance(facts, 29.9))
        #expect(isInOutageAllowance(facts, 30))
        #expect(isInOutageAllowance(facts, 59.9))
        #expect(!isInOutageAllowance(facts, 60))
        #expect(!isInOutageAllowance(asked, 30))
    }

    @Test("An answer that was not read in full does not end access")
    func anAnswerThatWasNotReadInFullDoesNotEndAccess() {
        func isInOutageAllowance(_ settings: Renewal, isComplete: Bool) -> Bool {
            var reported = evidence(31, [row("1", 0, 30)], [subscriptionID: settings])
            reported.isComplete = isComplete
            let facts = SubscriptionFacts(reported.slice(of: subscriptionID))
            return OutageAllowance(of: facts, timeline: Timeline(of: facts, policy: strictPolicy))
                .applies(at: day(31), asOf: facts.asOf, policy: strictPolicy)
        }
        #expect(isInOutageAllowance(renewal(), isComplete: false))
        #expect(!isInOutageAllowance(renewal(), isComplete: true))
        #expect(!isInOutageAllowance(renewal(false), isComplete: false), "an end the customer chose needs no news")
    }

    @Test("Spans follow each other for ever")
    func spansFollowEachOtherForEver() {
        var random = Seeded(seed: 23)
        for _ in 0..<300 {
            let facts = RandomLife.facts(using: &random)
            let spans = Timeline(of: facts, policy: standardPolicy).spans
            #expect(spans.last?.to == nil, "\(random)")
            for (left, right) in zip(spans, spans.dropFirst()) {
                #expect(left.to == right.from && left.from < right.from && !left.saysTheSame(as: right), "\(random)")
            }
        }
    }

    @Test("The timeline is the verdict at every instant")
    func timelineIsTheVerdictAtEveryInstant() throws {
        var random = Seeded(seed: 42)
        for _ in 0..<300 {
            let facts = RandomLife.facts(using: &random)
            let policy = Bool.random(using: &random) ? standardPolicy : strictPolicy
            let timeline = Timeline(of: facts, policy: policy)
            let start = try #require(timeline.spans.first?.from)
            let edges = timeline.spans.map(\.from).flatMap {
                [$0, $0 + Delay(milliseconds: 1), $0 - Delay(milliseconds: 1)]
            }
            let anywhere = (0..<40).map { _ in
                start + Delay(milliseconds: Int64.random(in: 0...20_000_000_000, using: &random))
            }
            for instant in edges + anywhere where instant >= start {
                var expected = verdict(of: facts, at: instant, policy: policy)
                expected.because = []
                let span = try #require(timeline.span(at: instant))
                #expect(span.saysTheSame(as: Span(from: instant, to: nil, verdict: expected)), "\(random)")
            }
        }
    }
}
