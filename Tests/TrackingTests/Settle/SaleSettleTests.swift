import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// Each test has it to itself.
private let reused = OncePerSuite<ReusedDatabase>.database()

@Suite("What is stated of a sale is stored, counted as money once, and read back", .serialized, reused)
struct SaleSettleTests {
    private func said(
        _ answer: Answer, _ sales: [Sale], price: Int64 = 10_990, term: TermWill? = nil, tries: Bool = true
    ) -> Finding {
        var evidence = answer.evidence
        for index in evidence.transactions.indices {
            evidence.transactions[index].sale = sales[index]
            evidence.transactions[index].price = Price(milliunits: price, currency: "EUR")
            evidence.transactions[index].quantity = sales[index].seats?.count ?? 1
        }
        evidence.renewals[0].renewal.term = term
        evidence.renewals[0].renewal.willRenew = tries
        return .verified(evidence)
    }

    @Test("A term: two wills, the newest payment, the money of each payment, and no news from the same answer")
    func term() async throws {
        try await withLedger(in: reused) { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-40), periods: 2, asOf: test.at(-1))
            let sales = (1...2).map { number in
                Sale(
                    plan: Sale.monthly,
                    payment: Sale.Payment(number: number, total: 12, termEndsAt: test.at(320), termPrice: 131_880))
            }
            let will = TermWill(renews: false, productID: "monthly", plan: Sale.monthly)
            let first = try await test.check(receipt, said(answer, sales, term: will))
            #expect(first.outcome == .verified)
            try await test.expectRows(
                """
                SELECT plan, payment_number, payments, commitment_ends_at = $1::timestamptz AS ends, next_payment, will_renew,
                       seats
                FROM perennial.subscription_now
                """, with: [.instant(test.at(320))], [["monthly", 2, 12, true, true, false, nil]])
            try await test.expectRows(
                "SELECT kind, amount_milliunits FROM perennial.revenue_event ORDER BY occurred_at",
                [["charge", 10_990], ["charge", 10_990]])
            let again = try await test.check(
                receipt, said(answer.but { $0.asOf = test.at(-0.5) }, sales, term: will))
            #expect(again.subscriptions.allSatisfy { $0.events.isEmpty })
            let enabled = try await test.check(
                receipt,
                said(
                    answer.but { $0.asOf = test.at(-0.25) }, sales,
                    term: TermWill(renews: true, productID: "monthly", plan: Sale.monthly)))
            #expect(enabled.subscriptions.flatMap(\.events).map(\.kind) == [.autoRenewEnabled])
            // An answer of verifyReceipt says nothing of either.
            let bare = try await test.check(receipt, answer.but { $0.asOf = test.at(-0.1) })
            #expect(bare.subscriptions.allSatisfy { $0.events.isEmpty })
            try await test.expectRows(
                "SELECT plan, payment_number, next_payment, will_renew FROM perennial.subscription_now",
                [["monthly", 2, true, true]])
            try await test.expectSound()
        }
    }

    @Test("A group: refunded seats are money back, its access stays, and a member pays nothing")
    func seats() async throws {
        try await withLedger(in: reused) { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-10), asOf: test.at(-9))
            try await test.check(receipt, said(answer, [Sale(seats: Sale.Seats(count: 7))], price: 7_000))
            let refund = answer.but { $0.asOf = test.at(-1) }
            let refunded = try await test.check(
                receipt, said(refund, [Sale(seats: Sale.Seats(count: 7, revoked: 2))], price: 7_000))
            #expect(refunded.subscriptions.allSatisfy { $0.events.isEmpty && $0.verdict.entitled })
            try await test.expectRows("SELECT seats, entitled FROM perennial.subscription_now", [[5, true]])
            try await test.expectRows(
                "SELECT kind, amount_milliunits FROM perennial.revenue_event ORDER BY occurred_at",
                [["charge", 7_000], ["refund", -2_000]])
            let member = Answer(from: test.at(-10), asOf: test.at(-1)).but {
                ($0.subscription, $0.shared, $0.line) = ("2000", true, "m")
            }
            try await test.check(
                try await test.upload("m", by: "bob"), said(member, [Sale(seats: Sale.Seats(count: 7))], price: 7_000))
            try await test.expectRows(
                "SELECT original_transaction_id, seats, entitled FROM perennial.subscription_now ORDER BY 1",
                [["1000", 5, true], ["2000", nil, true]])
            try await test.expectRows("SELECT count(*) AS lines FROM perennial.revenue_event", [[2]])
            try await test.expectSound()
        }
    }
}
