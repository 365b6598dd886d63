import SeededRandom
import Subscriptions
import Testing

/// A story: answers in order, and the kinds of events each of them makes.
struct EventStory: CustomTestStringConvertible, Sendable {
    let name: String
    let answers: [SubscriptionEvidence]
    let kinds: [String]
    var testDescription: String { name }

    init(_ name: String, _ steps: (SubscriptionEvidence, String)...) {
        self.name = name
        answers = steps.map(\.0)
        kinds = steps.map(\.1)
    }
}

private let first = row("1", 0, 30)
private let second = row("2", 30, 60)
private let trial = row("1", 0, 7, trial: true)

private let stories: [EventStory] = [
    EventStory("a start", (answer(1, [first], renewal()), "subscription.started")),
    EventStory("a trial", (answer(1, [trial], renewal()), "trial.started")),
    EventStory(
        "a whole past is one event",
        (answer(50, [first, row("2", 30, 45, cancelled: 40), row("3", 46, 60)]), "subscription.started")),
    EventStory(
        "renewed ahead of time, once", (answer(1, [first], renewal()), "subscription.started"),
        (answer(29.5, [first, second], renewal()), "subscription.renewed"),
        (answer(31, [first, second], renewal()), "")),
    EventStory(
        "one renewal for each period", (answer(1, [first], renewal()), "subscription.started"),
        (
            answer(95, [first, second, row("3", 60, 90), row("4", 90, 120)], renewal()),
            "subscription.renewed subscription.renewed subscription.renewed"
        )),
    EventStory(
        "a trial converted", (answer(1, [trial], renewal()), "trial.started"),
        (answer(8, [trial, row("2", 7, 37)], renewal()), "trial.converted")),
    EventStory(
        "a trial not converted", (answer(1, [trial], renewal()), "trial.started"),
        (answer(5, [trial], renewal(false)), "auto_renew.disabled"),
        (answer(8, [trial], renewal(false, intent: "1")), "trial.expired")),
    EventStory(
        "switched off, on, off, over", (answer(1, [first], renewal()), "subscription.started"),
        (answer(2, [first], renewal(false)), "auto_renew.disabled"),
        (answer(3, [first], renewal()), "auto_renew.enabled"),
        (answer(31, [first], renewal(false, intent: "1")), "subscription.expired auto_renew.disabled"),
        (answer(32, [first], renewal(false, intent: "1")), "")),
    EventStory(
        "awaiting is silent, a late renewal is a renewal", (answer(1, [first], renewal()), "subscription.started"),
        (answer(30.01, [first], renewal()), ""),
        (answer(30.1, [first, row("2", 30.01, 60)], renewal()), "subscription.renewed")),
    EventStory(
        "a renewal booked after the event of its expiry", (answer(1, [first], renewal()), "subscription.started"),
        (answer(30.5, [first], renewal()), "subscription.expired"),
        (answer(31, [first, second], renewal()), "subscription.renewed")),
    EventStory(
        "grace, retry, recovered", (answer(1, [first], renewal()), "subscription.started"),
        (answer(30.1, [first], renewal(intent: "2", retry: true, grace: 46)), "billing.grace_entered"),
        (answer(46.1, [first], renewal(intent: "2", retry: true, grace: 46)), "billing.grace_expired"),
        (answer(51, [first, row("2", 50, 80)], renewal()), "subscription.recovered")),
    EventStory(
        "recovered within grace, same anchor", (answer(1, [first], renewal()), "subscription.started"),
        (answer(31, [first], renewal(intent: "2", retry: true, grace: 46)), "billing.grace_entered"),
        (answer(33, [first, second], renewal()), "subscription.recovered")),
    EventStory(
        "retry in vain", (answer(1, [first], renewal()), "subscription.started"),
        (answer(31, [first], renewal(retry: true)), "billing.retry_entered"),
        (answer(95, [first], renewal(true, intent: "2", retry: false)), "subscription.expired")),
    EventStory(
        "grace seen, then nothing until it was all over", (answer(1, [first], renewal()), "subscription.started"),
        (answer(31, [first], renewal(intent: "2", retry: true, grace: 46)), "billing.grace_entered"),
        (
            answer(95, [first], renewal(true, intent: "2", retry: false, grace: 46)), "billing.grace_expired"
        )),
    EventStory(
        "grace ended by the customer", (answer(1, [first], renewal()), "subscription.started"),
        (answer(31, [first], renewal(intent: "2", retry: true, grace: 46)), "billing.grace_entered"),
        (answer(33, [first], renewal(false, intent: "1")), "billing.grace_expired auto_renew.disabled")),
    EventStory(
        "refunded, then renewed at the next date", (answer(1, [first], renewal()), "subscription.started"),
        (answer(11, [row("1", 0, 30, cancelled: 10)], renewal()), "refund.granted"),
        (answer(31, [row("1", 0, 30, cancelled: 10), second], renewal()), "subscription.renewed")),
    EventStory(
        "refunded, then bought again before the old end", (answer(1, [first], renewal()), "subscription.started"),
        (answer(11, [row("1", 0, 30, cancelled: 10)], renewal(false)), "refund.granted auto_renew.disabled"),
        (answer(15, [row("1", 0, 30, cancelled: 10), row("2", 14, 44)], renewal()), "subscription.reactivated")),
    EventStory(
        "a lapse and a return seen together", (answer(1, [first], renewal(false)), "subscription.started"),
        (
            answer(60, [first, row("2", 50, 80)], renewal()),
            "subscription.expired subscription.reactivated"
        )),
    EventStory(
        "a gap with renewal on", (answer(1, [first], renewal()), "subscription.started"),
        (answer(40, [first, row("2", 33, 63)], renewal()), "subscription.expired subscription.recovered")),
    EventStory(
        "reactivation implies renewal on", (answer(1, [first], renewal(false)), "subscription.started"),
        (answer(31, [first], renewal(false, intent: "1")), "subscription.expired"),
        (answer(120, [first, row("2", 100, 130)], renewal()), "subscription.reactivated")),
    EventStory(
        "an upgrade is no refund", (answer(1, [first], renewal()), "subscription.started"),
        (
            answer(
                11, [row("1", 0, 30, cancelled: 10, upgraded: true), row("2", 10, 375, product: "yearly")],
                renewal(product: "yearly")), "product.changed"
        )),
    EventStory(
        "a crossgrade without a mark", (answer(1, [first], renewal()), "subscription.started"),
        (answer(11, [first, row("2", 10, 375, product: "yearly")], renewal(product: "yearly")), "product.changed")),
    EventStory(
        "a change at renewal", (answer(1, [first], renewal()), "subscription.started"),
        (answer(10, [first], renewal(to: "weekly")), "product.change_scheduled"),
        (
            answer(31, [first, row("2", 30, 37, product: "weekly")], renewal(product: "weekly")),
            "product.changed subscription.renewed"
        )),
    EventStory(
        "a change withdrawn", (answer(1, [first], renewal(to: "weekly")), "subscription.started"),
        (answer(10, [first], renewal()), "product.change_withdrawn")),
    EventStory(
        "a change that took place, and another one",
        (
            answer(1, [row("1", 0, 7, product: "weekly")], renewal(product: "weekly", to: "monthly")),
            "subscription.started"
        ),
        (
            answer(
                40, [row("1", 0, 7, product: "weekly"), row("2", 7, 37), row("3", 37, 402, product: "yearly")],
                renewal(product: "yearly")),
            "product.changed subscription.renewed product.changed subscription.renewed"
        )),
    EventStory(
        "a change that took place, and the same one again",
        (answer(1, [first], renewal(to: "weekly")), "subscription.started"),
        (
            answer(
                45, [first, row("2", 30, 37, product: "weekly"), row("3", 37, 67)], renewal(to: "weekly")),
            "product.changed subscription.renewed product.changed subscription.renewed product.change_scheduled"
        )),
    EventStory(
        "a refund and its reversal", (answer(1, [first], renewal()), "subscription.started"),
        (answer(10, [row("1", 0, 30, cancelled: 9)], renewal()), "refund.granted"),
        (answer(12, [first], renewal()), ""), (answer(12.1, [first], renewal()), "refund.reversed")),
    EventStory(
        "a refund reversed too late", (answer(1, [first], renewal(false)), "subscription.started"),
        (answer(10, [row("1", 0, 30, cancelled: 9)], renewal(false)), "refund.granted"),
        (answer(40, [first], renewal(false)), ""),
        (answer(40.1, [first], renewal(false)), "refund.reversed subscription.expired")),
    EventStory(
        "a refund reversed, then bought again", (answer(1, [first], renewal(false)), "subscription.started"),
        (answer(10, [row("1", 0, 30, cancelled: 9)], renewal(false)), "refund.granted"),
        (answer(60, [first, row("2", 50, 80)], renewal()), "subscription.reactivated"),
        (answer(60.1, [first, row("2", 50, 80)], renewal()), "refund.reversed")),
    EventStory(
        "a month renewed and refunded between two answers", (answer(1, [first], renewal()), "subscription.started"),
        (answer(40, [first, row("2", 30, 60, cancelled: 35)], renewal()), "subscription.renewed refund.granted")),
    EventStory(
        "refunded while billing was tried again", (answer(1, [first], renewal()), "subscription.started"),
        (answer(40, [first], renewal(intent: "2", retry: true)), "billing.retry_entered"),
        (
            answer(60, [row("1", 0, 30, cancelled: 50)], renewal(false, intent: "2", retry: false)),
            "refund.granted auto_renew.disabled"
        )),
    EventStory(
        "refunded within grace", (answer(1, [first], renewal()), "subscription.started"),
        (answer(31, [first], renewal(intent: "2", retry: true, grace: 46)), "billing.grace_entered"),
        (
            answer(60, [row("1", 0, 30, cancelled: 40)], renewal(false, intent: "2", retry: false)),
            "refund.granted auto_renew.disabled"
        )),
    EventStory(
        "refunded after grace", (answer(1, [first], renewal()), "subscription.started"),
        (answer(31, [first], renewal(intent: "2", retry: true, grace: 46)), "billing.grace_entered"),
        (
            answer(60, [row("1", 0, 30, cancelled: 50)], renewal(false, intent: "2", retry: false)),
            "billing.grace_expired refund.granted auto_renew.disabled"
        )),
    EventStory(
        "family sharing ends", (answer(1, [row("1", 0, 30, family: true)]), "subscription.started"),
        (answer(10, [row("1", 0, 30, cancelled: 9, family: true)]), "family.revoked")),
    EventStory(
        "an extension is no renewal", (answer(1, [first], renewal()), "subscription.started"),
        (answer(10, [row("1", 0, 37)], renewal()), "subscription.extended")),
    EventStory(
        "a shortening needs two answers", (answer(1, [first], renewal()), "subscription.started"),
        (answer(10, [row("1", 0, 20)], renewal()), ""),
        (answer(10.1, [row("1", 0, 20)], renewal()), "subscription.shortened")),
    EventStory(
        "a lagging answer is forgotten", (answer(1, [row("1", 0, 37)], renewal()), "subscription.started"),
        (answer(10, [first], renewal()), ""), (answer(11, [row("1", 0, 37)], renewal()), ""),
        (answer(12, [first], renewal()), "")),
    EventStory(
        "a price increase", (answer(1, [first], renewal()), "subscription.started"),
        (answer(10, [first], renewal(consent: "0", increase: "0")), "price_increase.pending"),
        (answer(12, [first], renewal(consent: "1", increase: "1")), "price_increase.accepted"),
        (answer(31, [first, second], renewal()), "subscription.renewed")),
    EventStory(
        "charged ahead, then upgraded", (answer(1, [first], renewal()), "subscription.started"),
        (answer(29.5, [first, second], renewal()), "subscription.renewed"),
        (
            answer(
                29.8,
                [
                    row("1", 0, 30, cancelled: 29.7, upgraded: true), row("2", 30, 60, cancelled: 29.7, upgraded: true),
                    row("3", 29.7, 394.7, product: "yearly"),
                ], renewal(product: "yearly")), "product.changed"
        )),
    EventStory(
        "charged ahead, then only the next month replaced", (answer(1, [first], renewal()), "subscription.started"),
        (answer(29.5, [first, second], renewal()), "subscription.renewed"),
        (
            answer(
                29.995,
                [
                    first, row("2", 30, 60, cancelled: 29.99, upgraded: true),
                    row("3", 29.99, 394.99, product: "yearly"),
                ], renewal(product: "yearly")), "product.changed"
        )),
    EventStory(
        "older evidence adds a period once", (answer(40, [second], renewal()), "subscription.started"),
        (answer(35, [first, second], renewal()), "subscription.renewed"), (answer(36, [first], renewal()), "")),
]

@Suite("Reconciliation reports events") struct ReconcileTests {
    @Test("Each story has its events", arguments: stories)
    func eventsOfEachStory(_ story: EventStory) {
        let (_, events) = settle(story.answers)
        #expect(kinds(events) == story.kinds)
    }

    @Test("Every kind of subscription event is reported")
    func everyKindOfSubscriptionEventIsTold() {
        let reported = stories.reduce(into: Set<String>()) { reported, story in
            for kinds in story.kinds { reported.formUnion(kinds.split(separator: " ").map(String.init)) }
        }
        let elsewhere: Set = [
            "purchase.made", "purchase.refunded", "ownership.assigned", "ownership.transferred", "entitlements.changed",
        ]
        #expect(reported.union(elsewhere) == Set(EventKind.allCases.map(\.rawValue)))
    }

    @Test("The same answer again is nothing", arguments: stories)
    func theSameAnswerAgainIsNothing(_ story: EventStory) {
        var state: SubscriptionState?
        for answer in story.answers {
            let once = reconcile(state, with: answer, policy: standardPolicy)
            let again = reconcile(once.state, with: answer, policy: standardPolicy)
            #expect(again.events.isEmpty)
            #expect(!again.changed)
            #expect(again.state == once.state)
            state = once.state
        }
    }

    @Test("Random answers again are nothing and nothing is from the future")
    func randomAnswersAgainAreNothingAndNothingIsFromTheFuture() {
        var random = Seeded(seed: 77)
        for _ in 0..<300 {
            var state: SubscriptionState?
            for answer in RandomLife.answers(using: &random).shuffled(using: &random) {
                let once = reconcile(state, with: answer, policy: standardPolicy)
                let again = reconcile(once.state, with: answer, policy: standardPolicy)
                #expect(again.events.isEmpty && !again.changed && again.state == once.state, "\(random)")
                #expect(once.events.allSatisfy { $0.occurredAt <= once.state.asOf }, "\(random)")
                #expect(once.state.asOf >= state?.asOf ?? answer.asOf, "as_of never goes back, \(random)")
                #expect(once.state.version == (state?.version ?? 0) + (once.changed ? 1 : 0), "\(random)")
                state = once.state
            }
        }
    }

    @Test("Boundaries are reported once, however many answers come")
    func boundariesAreToldOnceHoweverOftenOneAsks() {
        let ends: [(Renewal, Double)] = [
            (renewal(false, intent: "1"), 30), (renewal(intent: "2", retry: true, grace: 46), 30),
            (renewal(retry: true), 30),
            (renewal(intent: "2", retry: true, grace: 33), 30),
        ]
        var random = Seeded(seed: 5)
        for (pending, end) in ends {
            let start = answer(1, [first], renewal(pending.willRenew))
            let rare = settle([start, answer(90, [first], pending)]).events.flatMap { $0 }.map(\.kind)
            for _ in 0..<40 {
                let days = (0..<12).map { _ in Double.random(in: end...90, using: &random) }.sorted() + [90]
                let often = settle([start] + days.map { answer($0, [first], pending) }).events.flatMap { $0 }
                let kinds = often.map(\.kind)
                #expect(Set(kinds).isSuperset(of: Set(rare)) && Set(kinds).count == kinds.count, "\(random)")
                #expect(kinds.last == rare.last, "\(random)")
            }
        }
    }
}
