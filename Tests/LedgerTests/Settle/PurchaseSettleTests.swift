import Subscriptions
import Testing

@testable import Ledger

@Suite("One-time purchases are settled with their events")
struct PurchaseSettleTests {
    @Test("Events, view and entitlements follow a purchase, its refund and the reversal")
    func life() async throws {
        try await withLedger { test in
            try await test.sell()
            let receipt = try await test.upload("a")
            let (bought, back) = (test.at(-10), test.at(-3))
            try await test.check(receipt, purchase("p", at: bought, asOf: test.at(-9)))
            #expect(try await test.entitled("coins") == [true, "coins", "active", nil, "Production", "verified"])
            let beforeRefund = try await test.ledger.now()
            try await test.check(receipt, purchase("p", at: bought, asOf: test.at(-2), refundedAt: back))
            #expect(
                try await test.entitled("coins") == [false, "coins", "revoked", "refund", "Production", "verified"])
            #expect(
                try await test.entitled("coins", at: test.at(-5)) == [
                    true, "coins", "active", nil, "Production", "verified",
                ])
            #expect(
                try await test.entitled("coins", at: test.at(-1), knownAt: beforeRefund)
                    == [true, "coins", "active", nil, "Production", "verified"])
            try await test.check(receipt, purchase("p", at: bought, asOf: test.at(-1)))
            try await test.expectRows(
                """
                SELECT revoked_at IS NOT NULL, s.due_at < now() + interval '70 s', s.fingerprint
                FROM ledger.purchase p JOIN ledger.poll_schedule s ON s.receipt_id = p.polled_by
                """, [[true, true, nil]])
            try await test.check(receipt, purchase("p", at: bought, asOf: test.at(-0.9)))
            #expect(try await test.entitled("coins") == [true, "coins", "active", nil, "Production", "verified"])
            #expect(
                try await test.rows("SELECT kind FROM ledger.event ORDER BY version, ordinal") == [
                    "purchase.made", "ownership.assigned", "purchase.refunded", "refund.reversed",
                ])
            try await test.expectRows(
                "SELECT customer, transaction_id, quantity, revoked_at FROM perennial.purchase_now",
                [["ann", "p", 1, nil]])
            try await test.expectSound()
        }
    }

    @Test("A subscription and a purchase with one original transaction id are two streams")
    func streams() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-10), asOf: test.at(-1)).but { $0.subscription = "p" })
            try await test.check(receipt, purchase("p", at: test.at(-10), asOf: test.at(-1)))
            try await test.expectRows("SELECT count(DISTINCT public_id), count(*) FROM ledger.event", [[4, 4]])
        }
    }
}
