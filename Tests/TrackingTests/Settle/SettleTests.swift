import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A settlement writes what its answer changes, and nothing else")
struct SettleTests {
    @Test("First sight, renewal and refund each write their events, versions and facts")
    func life() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let first = Answer(from: test.at(-40), asOf: test.at(-30))
            let started = try await test.check(receipt, first)
            #expect(started.outcome == .verified)
            #expect(started.subscriptions.map(\.events)[0].first?.kind == .subscriptionStarted)
            #expect(started.subscriptions[0].ownership == ["ann": .assigned])
            try await test.check(receipt, first.but { ($0.periods, $0.asOf) = (2, test.at(-5)) })
            let refund = first.but { ($0.periods, $0.asOf, $0.refunded) = (2, test.at(-1), (1, test.at(-2))) }
            let refunded = try await test.check(receipt, refund)
            #expect(refunded.subscriptions[0].verdict.state == .revoked)
            #expect(
                try await test.events() == [
                    [1, 0, "subscription.started"], [2, 0, "ownership.assigned"], [3, 0, "subscription.renewed"],
                    [4, 0, "refund.granted"],
                ])
            try await test.expectRows("SELECT version, periods, will_renew FROM ledger.subscription", [[4, 2, true]])
            try await test.expectRows(
                "SELECT customer, state, reason, entitled, periods, version FROM perennial.subscription_now",
                [["ann", "revoked", "refund", false, 2, 4]])
            try await test.expectSound()
        }
    }

    @Test("Late, older evidence adds what no newer answer speaks of, and takes nothing away")
    func late() async throws {
        try await withLedger { test in
            let (receipt, old) = (try await test.upload("a"), try await test.upload("old", by: "ann"))
            let newer = Answer(from: test.at(-40), periods: 2, asOf: test.at(-1)).but { $0.willRenew = false }
            try await test.check(receipt, newer)
            let before = try await test.timeline()
            try await test.check(old, Answer(from: test.at(-40), periods: 1, asOf: test.at(-20)))
            #expect(try await test.timeline() == before)
            try await test.expectRows(
                "SELECT will_renew, periods, as_of = $1::timestamptz AS kept FROM ledger.subscription",
                with: [.instant(test.at(-1))], [[false, 2, true]])
            let earlier = Answer(from: test.at(-100), periods: 2, asOf: test.at(-45)).but { $0.line = "e" }
            try await test.check(old, earlier)
            #expect(try await test.text("SELECT periods FROM ledger.subscription") == "4")
            #expect(try await test.entitled() == [true, "monthly", "active", nil, "Production", "verified"])
            try await test.expectSound()
        }
    }

    @Test("Access that grace gave stays in the history, and goes on, although later answers do not say its date")
    func graceUnsaid() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let failed = Answer(from: test.at(-40), asOf: test.at(-9)).but {
                ($0.intent, $0.inRetry, $0.graceUntil) = ("2", true, test.at(6))
            }
            try await test.check(receipt, failed)
            try await test.check(receipt, failed.but { ($0.asOf, $0.graceUntil) = (test.at(-5), nil) })
            #expect(try await test.entitled() == [true, "monthly", "grace_period", nil, "Production", "verified"])
            let over = failed.but {
                ($0.asOf, $0.graceUntil, $0.inRetry, $0.willRenew) = (test.at(-1), nil, false, false)
            }
            try await test.check(receipt, over)
            let ended: [[Cell]] = [
                [-40, "active", nil, false], [-10, "grace_period", nil, false],
                [-1, "expired", "billing_error", false],
            ]
            #expect(try await test.timeline() == ended)
            #expect(
                try await test.entitled(at: test.at(-3)) == [
                    true, "monthly", "grace_period", nil, "Production", "verified",
                ])
            #expect(try await test.entitled().prefix(4) == [false, "monthly", "expired", "billing_error"])
            try await test.check(receipt, over.but { $0.asOf = test.at(-0.5) })
            #expect(try await test.timeline() == ended, "as it was written down")
            try await test.expectSound()
        }
    }

    @Test("A settlement that is sent twice changes nothing the second time", arguments: [0, 1])
    func twice(equalAnswersBefore: Int) async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            for _ in 0..<equalAnswersBefore {
                try await test.check(receipt, Answer(from: test.at(-10), asOf: test.at(-2)))
            }
            let claim = try await test.claim(receipt)
            let finding = Answer(from: test.at(-10), asOf: test.at(-1)).finding
            try await test.settle(claim, finding, latestReceipt: "new")
            let before = try await test.everything()
            let again = try await test.settle(claim, finding, latestReceipt: "new")
            let after = try await test.everything()
            for (table, rows) in before { #expect(after[table] == rows, "\(table) changed") }
            #expect(again.subscriptions[0].events == [])
            #expect(again.subscriptions[0].verdict.state == .active)
        }
    }

    @Test("A refusal or an outage that is sent twice changes nothing the second time", arguments: [true, false])
    func refusalTwice(refused: Bool) async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let claim = try await test.claim(receipt)
            try await test.settle(claim, refused ? rejected() : outage)
            let before = try await test.everything()
            try await test.settle(claim, refused ? rejected() : outage)
            let after = try await test.everything()
            for (table, rows) in before { #expect(after[table] == rows, "\(table) changed") }
        }
    }

    @Test("After a lost lease the facts still merge, and the schedule is left to the new holder")
    func lostLease() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let lost = try await test.claim(receipt)
            try await test.run("UPDATE ledger.poll_schedule SET due_at = now()")
            let other = try await test.ledger.claims.startWorker(host: "other", process: 2)
            let held = try await test.ledger.claims.claim(receipt, for: other, leaseSeconds: 60)
            #expect(held.leaseToken != lost.leaseToken)
            let before = try await test.rows("SELECT s::text AS row FROM ledger.poll_schedule s")
            try await test.settle(lost, Answer(from: test.at(-10), asOf: test.at(-1)).finding)
            #expect(try await test.rows("SELECT s::text AS row FROM ledger.poll_schedule s") == before)
            #expect(try await test.events().first == [1, 0, "subscription.started"])
        }
    }

    @Test("A refusal or a failure that comes after another lease was given changes nothing")
    func outdatedRefusal() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-20), asOf: test.at(-9)))
            let receiptNow = "SELECT outcome::text AS outcome, rejections, asked_at FROM ledger.receipt"
            let before = try await test.text(receiptNow)
            let lost = try await test.claim(receipt)
            let newest = try await test.claim(receipt)
            for finding in [rejected(), outage] {
                let late = try await test.ledger.settlements.settleInFull(
                    [test.settlement(lost, finding)])
                #expect(late.settled.isEmpty && late.failures.isEmpty)
                #expect(try await test.text(receiptNow) == before)
            }
            try await test.settle(newest, rejected())
            #expect(try await test.text("SELECT rejections FROM ledger.receipt") == "1")
        }
    }

    @Test("A lease token is never given twice, not even after the receipt left the schedule")
    func tokens() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let first = try await test.claim(receipt)
            try await test.run("DELETE FROM ledger.poll_schedule")
            try await test.upload("a")
            let second = try await test.claim(receipt)
            #expect(second.leaseToken > first.leaseToken)
        }
    }

    @Test("One bad receipt in a batch does not sink the others")
    func poison() async throws {
        try await withNewLedger { test in
            var batch: [Settlement] = []
            for index in 0..<9 {
                let receipt = try await test.upload("r\(index)", by: "customer \(index)")
                let answer = Answer(from: test.at(-10), asOf: test.at(-1)).but {
                    $0.subscription = OriginalTransactionID("s\(index)")
                }
                batch.append(test.settlement(try await test.claim(receipt), answer.finding))
            }
            try await test.run(
                """
                ALTER TABLE ledger.subscription
                ADD CONSTRAINT takes_no_s4 CHECK (original_transaction_id <> 's4' OR version = 0)
                """)
            let settled = try await test.ledger.settlements.settleInFull(batch)
            #expect(settled.settled.count == 8)
            #expect(settled.failures.map(\.receiptID) == [batch[4].claim.receiptID])
            #expect(settled.failures.first?.reason.contains("takes_no_s4") == true)
            #expect(
                try await test.rows(
                    "SELECT original_transaction_id AS id FROM ledger.subscription WHERE version > 0 ORDER BY 1")
                    == ["s0", "s1", "s2", "s3", "s5", "s6", "s7", "s8"])
            #expect(try await test.text("SELECT count(*) FROM ledger.poll_schedule WHERE leased_by IS NOT NULL") == "1")
        }
    }

    @Test("The answer of a refusal names its kind")
    func refusalKind() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let settled = try await test.check(receipt, rejected(.otherBundle, status: 0))
            #expect(settled.outcome == .rejected)
            #expect(settled.refusal == .otherBundle)
            #expect(settled.reason == "Apple refused (0).")
            #expect(try await test.check(receipt, outage).refusal == nil)
        }
    }
}

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
