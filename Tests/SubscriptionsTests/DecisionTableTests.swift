@testable import Subscriptions
import Testing

/// One row of a table: what Apple said, when we look, and what it means.
struct DecisionCase: CustomTestStringConvertible, Sendable {
    let name: String
    let evidence: SubscriptionEvidence
    var at: Double?
    var policy = strictPolicy
    let expected: String
    var until: Double?
    var flags: [Flag] = []
    var expires: Double?

    var testDescription: String { name }
}

private let month = row("1", 0, 30)
private let trial = row("1", 0, 7, trial: true)

private let cases: [DecisionCase] = [
    DecisionCase(
        name: "1 refunded", evidence: answer(10, [row("1", 0, 30, cancelled: 9)], renewal(false)),
        expected: "revoked/refund", expires: 30),
    DecisionCase(
        name: "1 refunded although an older period is live",
        evidence: answer(40, [month, row("2", 30, 60, cancelled: 39)], renewal()), expected: "revoked/refund",
        expires: 60),
    DecisionCase(
        name: "1 an old refund does not count",
        evidence: answer(40, [row("1", 0, 30, cancelled: 9), row("2", 30, 60)]),
        expected: "active", until: 60, expires: 60),
    DecisionCase(
        name: "1 no end of its own", evidence: answer(10, [row("1", 0, 30, cancelled: 9)]), at: 4000,
        expected: "revoked/refund", expires: 30),
    DecisionCase(
        name: "1 a next period refunded before it began",
        evidence: answer(30.5, [month, row("2", 30, 60, cancelled: 29)]),
        expected: "revoked/refund", expires: 60),
    DecisionCase(
        name: "1 the running period goes on then", evidence: answer(29.5, [month, row("2", 30, 60, cancelled: 29)]),
        expected: "active", until: 30, expires: 30),
    DecisionCase(
        name: "1 an older refunded period that would have ended later does not hide it",
        evidence: answer(
            75, [row("1", 0, 365, product: "yearly", cancelled: 1), row("2", 10, 40), row("3", 60, 90, cancelled: 70)],
            renewal(false)), expected: "revoked/refund", expires: 90),
    DecisionCase(
        name: "2 family", evidence: answer(10, [row("1", 0, 30, cancelled: 9, family: true)]),
        expected: "revoked/family", flags: [.familyShared], expires: 30),
    DecisionCase(
        name: "3 replacement awaited",
        evidence: answer(10, [row("1", 0, 30, cancelled: 10, upgraded: true)], renewal()),
        expected: "awaiting_renewal/replacement", until: 30, expires: 30),
    DecisionCase(
        name: "3 bought again after a refund, then replaced",
        evidence: answer(
            20, [row("1", 0, 365, cancelled: 9), row("2", 10, 40, cancelled: 20, upgraded: true)], renewal()),
        expected: "awaiting_renewal/replacement", until: 40, expires: 40),
    DecisionCase(
        name: "3 replaced row over, nothing came",
        evidence: answer(10, [row("1", 0, 30, cancelled: 10, upgraded: true)]), at: 31, expected: "expired/unknown",
        expires: 30),
    DecisionCase(
        name: "3 another subscription of the group took over",
        evidence: answer(10, [row("1", 0, 30, cancelled: 10, upgraded: true)], replacedBy: "2000"),
        expected: "expired/other", expires: 30),
    DecisionCase(
        name: "3 upgraded without a cancellation date, replacement here",
        evidence: answer(
            50, [row("1", 0, 365, product: "yearly", upgraded: true), row("2", 10, 40)], renewal(false, intent: "1")),
        expected: "expired/voluntary", expires: 40),
    DecisionCase(
        name: "3 a replaced month after an older one lapses by its own renewal",
        evidence: answer(
            61, [month, row("2", 30, 60, cancelled: 40, upgraded: true)], renewal(intent: "2", retry: true, grace: 66)),
        expected: "grace_period", until: 66, expires: 60),
    DecisionCase(
        name: "4 active", evidence: answer(10, [month], renewal()), expected: "active", until: 30, expires: 30),
    DecisionCase(name: "4 nothing pending", evidence: answer(10, [month]), expected: "active", until: 30, expires: 30),
    DecisionCase(
        name: "4 charged ahead", evidence: answer(29.5, [month, row("2", 30, 60)], renewal()), expected: "active",
        until: 60, flags: [.futureDated], expires: 60),
    DecisionCase(
        name: "4 charged ahead, nothing runs", evidence: answer(29.5, [row("2", 30, 60)], renewal()),
        expected: "active", until: 60, flags: [.futureDated], expires: 60),
    DecisionCase(
        name: "5 will not renew", evidence: answer(10, [month], renewal(false)), expected: "active", until: 30,
        expires: 30),
    DecisionCase(
        name: "6 change scheduled", evidence: answer(10, [month], renewal(to: "weekly")), expected: "active", until: 30,
        flags: [.changeScheduled], expires: 30),
    DecisionCase(
        name: "6 no change when it will not renew", evidence: answer(10, [month], renewal(false, to: "weekly")),
        expected: "active", until: 30, expires: 30),
    DecisionCase(
        name: "7 grace before retry", evidence: answer(31, [month], renewal(intent: "2", retry: true, grace: 46)),
        expected: "grace_period", until: 46, expires: 30),
    DecisionCase(
        name: "8 retry", evidence: answer(31, [month], renewal(intent: "2", retry: true)), expected: "billing_retry",
        expires: 30),
    DecisionCase(
        name: "8 retry without intent", evidence: answer(31, [month], renewal(retry: true)), expected: "billing_retry",
        expires: 30),
    DecisionCase(
        name: "8 grace is over", evidence: answer(31, [month], renewal(intent: "2", retry: true, grace: 46)), at: 46,
        expected: "billing_retry", expires: 30),
    DecisionCase(
        name: "9 renewal awaited", evidence: answer(30.05, [month], renewal()), policy: standardPolicy,
        expected: "awaiting_renewal/renewal", until: 30 + 2.0 / 24, expires: 30),
    DecisionCase(
        name: "9 nothing pending", evidence: answer(30.05, [month]), policy: standardPolicy,
        expected: "awaiting_renewal/renewal", until: 30 + 2.0 / 24, expires: 30),
    DecisionCase(
        name: "9 not without leeway", evidence: answer(30, [month], renewal()), expected: "expired/unknown", expires: 30
    ),
    DecisionCase(
        name: "10 voluntary", evidence: answer(31, [month], renewal(false, intent: "1")),
        expected: "expired/voluntary", expires: 30),
    DecisionCase(
        name: "10 off without intent", evidence: answer(30.01, [month], renewal(false)), policy: standardPolicy,
        expected: "expired/voluntary", expires: 30),
    DecisionCase(
        name: "10 a contradictory legacy answer",
        evidence: answer(31, [month], renewal(false, intent: "1", retry: true)),
        expected: "expired/voluntary", expires: 30),
    DecisionCase(
        name: "10 trial not converted", evidence: answer(8, [trial], renewal(false, intent: "1")),
        expected: "expired/voluntary", flags: [.trial], expires: 7),
    DecisionCase(
        name: "11 billing", evidence: answer(95, [month], renewal(false, intent: "2", retry: false, grace: 46)),
        expected: "expired/billing_error", expires: 30),
    DecisionCase(
        name: "12 price", evidence: answer(31, [month], renewal(false, intent: "3")),
        expected: "expired/price_increase", expires: 30),
    DecisionCase(
        name: "13 product", evidence: answer(31, [month], renewal(false, intent: "4")),
        expected: "expired/product_unavailable", expires: 30),
    DecisionCase(
        name: "14 other", evidence: answer(31, [month], renewal(false, intent: "5")), expected: "expired/other",
        expires: 30),
    DecisionCase(
        name: "14 a word of the future", evidence: answer(31, [month], renewal(false, intent: "TEST")),
        expected: "expired/other", expires: 30),
    DecisionCase(
        name: "15 past the leeway", evidence: answer(31, [month], renewal()), policy: standardPolicy,
        expected: "expired/unknown", expires: 30),
    DecisionCase(
        name: "price consent pending", evidence: answer(10, [month], renewal(consent: "0")), expected: "active",
        until: 30, flags: [.priceConsentPending], expires: 30),
    DecisionCase(
        name: "price consent is nothing once it is over",
        evidence: answer(31, [month], renewal(false, intent: "3", consent: "0")), expected: "expired/price_increase",
        expires: 30),
    DecisionCase(
        name: "before it began", evidence: answer(10, [month]), at: -1, expected: "expired/unknown", expires: 30),
]

@Suite("The decision table gives each subscription its state and grounds") struct DecisionTableTests {
    @Test("Each row of the table gives its verdict", arguments: cases)
    func verdictOfEachRow(_ example: DecisionCase) {
        let facts = SubscriptionFacts(example.evidence)
        let instant = example.at.map(day) ?? facts.asOf
        let found = verdict(of: facts, at: instant, policy: example.policy)
        let words = found.state.rawValue + (found.reason.map { "/\($0.rawValue)" } ?? "")
        #expect(words == example.expected)
        #expect(found.entitledUntil == example.until.map(day))
        #expect(found.entitled == (example.until != nil))
        #expect(found.flags == example.flags)
        #expect(found.expiresAt == example.expires.map(day))
        #expect(!found.because.isEmpty)
        #expect(Set(found.because.map(\.rule)).count == 1)
    }

    @Test("Product and flags are those of the running period")
    func productAndFlagsAreOfTheRunningPeriod() {
        let rows = [row("1", 0, 30, trial: true), row("2", 30, 60, product: "weekly")]
        let found = verdict(of: SubscriptionFacts(answer(29.5, rows)), at: day(29.5), policy: strictPolicy)
        #expect(found.productID == "monthly")
        #expect(found.flags == [.futureDated, .trial])
        #expect(found.expiresAt == day(60))
        #expect(found.because.map(\.path).contains("latest_receipt_info[2].expires_date_ms"))
    }

    @Test("Grounds name fields of legacy answers too")
    func groundsNameFieldsOfLegacyAnswersToo() {
        var legacy = month
        legacy.path = "latest_receipt_info"
        var slice = answer(10, [legacy])
        slice.renewals = [
            RenewalRow(path: "", asOf: day(10), originalTransactionID: subscriptionID, renewal: renewal(false))
        ]
        let found = verdict(of: SubscriptionFacts(slice), at: day(10), policy: strictPolicy)
        #expect(
            found.because == [
                Ground(
                    rule: "running_period", path: "latest_receipt_info.expires_date",
                    value: String(day(30).milliseconds)),
                Ground(rule: "running_period", path: "auto_renew_status", value: "0"),
            ])
    }

    @Test("Grounds name the field that was read")
    func groundsNameTheFieldThatWasRead() {
        func paths(_ row: TransactionRow, _ renewals: [RenewalRow] = [], at instant: Double = 10) -> [Ground] {
            var slice = answer(instant, [row])
            slice.renewals = renewals
            return verdict(of: SubscriptionFacts(slice), at: day(instant), policy: strictPolicy).because
        }
        var old = row("0", 0, 30, cancelled: 9)
        old.expiryForm = .text
        old.cancellationForm = .text
        #expect(
            paths(old) == [
                Ground(
                    rule: "refunded", path: "latest_receipt_info[0].cancellation_date",
                    value: "2026-01-10 00:00:00 Etc/GMT"),
                Ground(
                    rule: "refunded", path: "latest_receipt_info[0].expires_date",
                    value: "2026-01-31 00:00:00 Etc/GMT"),
            ])
        var legacyList = row("0", 0, 30)
        legacyList.expiryForm = .plain
        let grace = RenewalRow(
            path: "pending_renewal_info[0]", asOf: day(31), originalTransactionID: subscriptionID,
            renewal: renewal(grace: 36), graceForm: .text)
        #expect(
            paths(legacyList, [grace], at: 31) == [
                Ground(
                    rule: "grace", path: "latest_receipt_info[0].expires_date", value: String(day(30).milliseconds)),
                Ground(
                    rule: "grace", path: "pending_renewal_info[0].grace_period_expires_date",
                    value: "2026-02-06 00:00:00 Etc/GMT"),
            ])
    }

    @Test("The pending row of the live period comes before that of a refunded one")
    func pendingRowOfTheLivePeriodBeforeThatOfARefundedOne() {
        let rows = [month, row("2", 5, 370, product: "yearly", cancelled: 6)]
        let pending = [renewal(true, product: "yearly"), renewal(false, consent: "0")]
        for renewals in [pending, pending.reversed()] {
            let facts = SubscriptionFacts(answer(10, rows, renewals[0], renewals[1]))
            #expect(facts.currentRenewal?.value.productID == "monthly")
            #expect(facts.currentRenewal?.value.willRenew == false)
            let found = verdict(of: facts, at: day(10), policy: strictPolicy)
            #expect(found.state == .active && found.productID == "monthly")
            #expect(found.flags == [.priceConsentPending], "it speaks of the running period too")
        }
    }

    @Test("The pending row is chosen by product, not by place")
    func pendingRowIsChosenByProductNotByPlace() {
        let rows = [row("1", 0, 30, product: "weekly"), row("2", 5, 35)]
        let table: [([Renewal], Bool?)] = [
            ([renewal(true, product: "weekly"), renewal(false)], false),
            ([renewal(true, product: "weekly"), renewal(false, product: "daily", to: "monthly")], false),
            ([renewal(false, product: "weekly"), renewal(true, product: "daily")], true),
            ([renewal(false, product: "weekly"), renewal(nil, product: "daily")], false),
        ]
        for (pending, expected) in table {
            var slice = answer(10, rows)
            slice.renewals = pending.map {
                RenewalRow(path: "p", asOf: day(10), originalTransactionID: subscriptionID, renewal: $0)
            }
            #expect(SubscriptionFacts(slice).currentRenewal?.value.willRenew == expected)
        }
    }

    @Test("What was said of an earlier period never ends a later one")
    func whatWasSaidOfAnEarlierPeriodNeverEndsALaterOne() {
        let lapsed = SubscriptionFacts(answer(40, [month], renewal(false, intent: "1")))
        let device = row("2", 50, 80, asOf: 50, source: .deviceReceipt)
        let facts = lapsed.merging(SubscriptionFacts(answer(50, [device])))
        #expect(facts.currentRenewal == nil)
        #expect(verdict(of: facts, at: day(80.01), policy: standardPolicy).state == .awaitingRenewal)
    }
}
