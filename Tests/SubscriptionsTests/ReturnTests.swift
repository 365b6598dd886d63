import Subscriptions
import Testing

@Suite("A later period is reported as one of four kinds") struct ReturnTests {
    /// A period after another one, with what was last seen before it.
    struct Return: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var isTrial = false
        var seen = Seen.renewing
        /// Days between the two periods.
        let gap: Double
        var environment = StoreEnvironment.production
        var speedup = 1
        let kinds: String
    }

    /// What the answer before says.
    enum Seen: Sendable {
        case renewing, off, unsaid, retried, retriedOff, inGrace

        /// When it was given, as days after the end.
        var asOf: Double {
            switch self {
            case .renewing, .off, .unsaid: -5
            case .retried, .retriedOff, .inGrace: 0.5
            }
        }

        var renewal: Renewal {
            switch self {
            case .renewing: SubscriptionsTests.renewal(true)
            case .off: SubscriptionsTests.renewal(false)
            case .unsaid: SubscriptionsTests.renewal(nil)
            case .retried: SubscriptionsTests.renewal(true, intent: "2", retry: true)
            case .retriedOff: SubscriptionsTests.renewal(false, intent: "2", retry: true)
            case .inGrace: SubscriptionsTests.renewal(true, intent: "2", retry: true, grace: 36)
            }
        }
    }

    private static let hour = 1.0 / 24
    private static let second = 1.0 / 86_400

    static let returns: [Return] = [
        Return(testDescription: "in time", gap: 0, kinds: "subscription.renewed"),
        Return(testDescription: "within the hour", gap: hour, kinds: "subscription.renewed"),
        Return(
            testDescription: "just past the hour", gap: hour + second,
            kinds: "subscription.expired subscription.recovered"),
        Return(testDescription: "on day 65", gap: 65, kinds: "subscription.expired subscription.recovered"),
        Return(
            testDescription: "just past day 65", gap: 65 + second,
            kinds: "subscription.expired subscription.reactivated"),
        Return(
            testDescription: "within the hour, renewal off", seen: .off, gap: hour,
            kinds: "subscription.renewed auto_renew.enabled"),
        Return(
            testDescription: "past the hour, renewal off", seen: .off, gap: hour + second,
            kinds: "subscription.expired subscription.reactivated"),
        Return(
            testDescription: "after ten days, renewal unsaid", seen: .unsaid, gap: 10,
            kinds: "subscription.expired subscription.recovered"),
        Return(
            testDescription: "tried again, paid", seen: .retried, gap: 20, kinds: "subscription.recovered"),
        Return(
            testDescription: "tried again, paid within the hour", seen: .retried, gap: hour,
            kinds: "subscription.recovered"),
        Return(
            testDescription: "tried again, paid after Apple gave up", seen: .retried, gap: 70,
            kinds: "subscription.reactivated"),
        Return(
            testDescription: "tried again, switched off, bought", seen: .retriedOff, gap: 20,
            kinds: "subscription.reactivated"),
        Return(
            testDescription: "grace over unseen, paid", seen: .inGrace, gap: 20,
            kinds: "billing.grace_expired subscription.recovered"),
        Return(testDescription: "paid within grace", seen: .inGrace, gap: 0, kinds: "subscription.recovered"),
        Return(testDescription: "a trial in time", isTrial: true, gap: 0, kinds: "trial.converted"),
        Return(
            testDescription: "a trial, paid ten days late", isTrial: true, gap: 10,
            kinds: "trial.expired trial.converted"),
        Return(
            testDescription: "a trial, tried again, paid", isTrial: true, seen: .retried, gap: 20,
            kinds: "trial.converted"),
        Return(
            testDescription: "a trial given up, bought later", isTrial: true, seen: .off, gap: 10,
            kinds: "trial.expired subscription.reactivated"),
        Return(
            testDescription: "a trial, back after months", isTrial: true, gap: 66,
            kinds: "trial.expired subscription.reactivated"),
        Return(
            testDescription: "in the sandbox within ten minutes", gap: hour / 6, environment: .sandbox,
            kinds: "subscription.renewed"),
        Return(
            testDescription: "in the sandbox past ten minutes", gap: hour / 6 + second, environment: .sandbox,
            kinds: "subscription.expired subscription.recovered"),
        Return(
            testDescription: "sixty times as fast, within a minute", gap: hour / 60, speedup: 60,
            kinds: "subscription.renewed"),
        Return(
            testDescription: "sixty times as fast, past a minute, off", seen: .off, gap: hour / 60 + second,
            speedup: 60,
            kinds: "subscription.expired subscription.reactivated"),
        Return(
            testDescription: "sixty times as fast, within 26 hours", gap: 65.0 / 60, speedup: 60,
            kinds: "subscription.expired subscription.recovered"),
        Return(
            testDescription: "sixty times as fast, past 26 hours", gap: 65.0 / 60 + second, speedup: 60,
            kinds: "subscription.expired subscription.reactivated"),
    ]

    @Test("Each return is reported as one kind", arguments: returns)
    func eachReturnIsToldAsOneKind(_ story: Return) {
        let first = row("1", 0, 30, trial: story.isTrial)
        let back = 30 + story.gap
        let before = answer(30 + story.seen.asOf, [first], story.seen.renewal)
        let after = answer(max(back, 31) + 1, [first, row("2", back, back + 30)], renewal())
        let policy = Policy.standard(for: story.environment, speedup: story.speedup).with(leeway: .zero)
        #expect(kinds(settle([before, after], policy: policy).events).last == story.kinds)
        // What follows a lapse was bought; the rest are renewals, whichever answer came first.
        for (one, other) in [(before, after), (after, before)] {
            let isRenewal = SubscriptionFacts(one).adding(other).renewals(by: policy).last
            #expect(isRenewal == !story.kinds.contains("reactivated"))
        }
    }

    /// Periods in days, and whether each is a renewal.
    struct Chain: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let rows: [TransactionRow]
        let renewals: [Bool]
    }

    private static let chains: [Chain] = [
        Chain(
            testDescription: "the first one carries the id", rows: [row("1", 0, 30, transaction: "1000")],
            renewals: [false]),
        Chain(
            testDescription: "the first one is as old as the subscription",
            rows: [row("1", 60, 90).beginning(60.01)], renewals: [false]),
        Chain(testDescription: "a lone row of a chain", rows: [row("4", 90, 120).beginning(0)], renewals: [true]),
        Chain(
            testDescription: "a lone row that says nothing of its chain", rows: [row("4", 90, 120)], renewals: [true]),
        Chain(
            testDescription: "a second early and a second late",
            rows: [
                row("1", 0, 30, transaction: "1000"), row("2", 30 - second, 60), row("3", 60 + second, 90),
            ], renewals: [false, true, true]),
        Chain(
            testDescription: "nothing is known of the end, and a longer gap is a lapse",
            rows: [row("1", 0, 30, transaction: "1000"), row("2", 30 + hour + second, 60), row("3", 90, 120)],
            renewals: [false, false, false]),
        Chain(
            testDescription: "an upgrade is bought, and renews",
            rows: [
                row("1", 0, 30, cancelled: 10, upgraded: true, transaction: "1000"),
                row("2", 10, 40, product: "yearly"), row("3", 40, 70, product: "yearly"),
            ], renewals: [false, false, true]),
        Chain(
            testDescription: "an upgrade in the last hour",
            rows: [
                row("1", 0, 30, cancelled: 30 - second, upgraded: true, transaction: "1000"),
                row("2", 30 - second, 60, product: "yearly"),
            ], renewals: [false, false]),
        Chain(
            testDescription: "another product from the renewal on",
            rows: [row("1", 0, 30, transaction: "1000"), row("2", 30, 60, product: "yearly")], renewals: [false, true]),
        Chain(
            testDescription: "bought again after a refund",
            rows: [row("1", 0, 30, cancelled: 5, transaction: "1000"), row("2", 6, 36)], renewals: [false, false]),
        Chain(
            testDescription: "seats that are added, and renew with the others",
            rows: [row("1", 0, 30, transaction: "1000"), row("2", 10, 30), row("3", 30, 60), row("4", 30, 60)],
            renewals: [false, false, true, true]),
    ]

    @Test("What was bought and what was renewed follows from the rows", arguments: chains)
    func boughtOrRenewed(_ chain: Chain) {
        let policy = Policy.standard(for: .production)
        let whole = SubscriptionFacts(answer(200, chain.rows))
        #expect(whole.renewals(by: policy) == chain.renewals)
        let parts = chain.rows.reversed().map { SubscriptionFacts(answer(200, [$0])) }
        let merged = parts.dropFirst().reduce(parts[0]) { $0.merging($1) }
        #expect(merged.renewals(by: policy) == chain.renewals)
    }

    @Test("A renewal after a reported end is late")
    func aRenewalAfterAReportedEndIsLate() {
        let first = row("1", 0, 30, trial: true)
        let events = settle(
            [
                answer(1, [first], renewal()), answer(30.01, [first], renewal()),
                answer(30.1, [first, row("2", 30, 60)], renewal()),
            ], policy: strictPolicy
        ).events
        #expect(kinds(events) == ["trial.started", "trial.expired", "trial.converted"])
        #expect(events.last?.first?.detail["late"] == .flag(true))
    }

    /// A replacement is the only event only where one product follows the other at once.
    @Test("A period long after a replaced one is a return")
    func aPeriodLongAfterAReplacedOneIsAReturn() {
        let replaced = row("1", 0, 30, cancelled: 10, upgraded: true)
        let events = settle([
            answer(1, [row("1", 0, 30)], renewal()),
            answer(101, [replaced, row("2", 100, 130, product: "yearly")], renewal(product: "yearly")),
        ]).events
        #expect(kinds(events).last == "subscription.expired product.changed subscription.reactivated")
    }
}

extension TransactionRow {
    /// The same with `original_purchase_date`, in days.
    fileprivate func beginning(_ first: Double) -> TransactionRow {
        var row = self
        row.originalPurchasedAt = day(first)
        return row
    }
}
