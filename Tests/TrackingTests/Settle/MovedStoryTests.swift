import Postgres
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What goes on under another id has the figures of a subscription that stays")
struct MovedStoryTests {
    private let library = AnswerLibrary()

    private func tell(_ test: TestLedger, _ receipt: ReceiptID, _ evidence: Evidence) async throws {
        let settlement = Settlement(
            claim: try await test.claim(receipt), finding: .verified(evidence), body: library.keep(evidence),
            latestReceipt: nil)
        let settled = try await test.ledger.settlements.settleInFull([settlement])
        #expect(settled.failures.map(\.reason) == [])
    }

    private func expectWhole(_ test: TestLedger, _ story: String = "") async throws {
        #expect(try await test.violations().map { "\($0)" } == [], "\(story)")
        #expect(try await test.differences(from: library) == [], "\(story)")
    }

    /// Makes an answer speak of the same line items under another id.
    private func evidence(_ answer: Answer, under id: String, item: String) -> Evidence {
        var evidence = answer.but { ($0.subscription, $0.line) = (OriginalTransactionID(item), "") }.evidence
        for index in evidence.transactions.indices {
            evidence.transactions[index].originalTransactionID = OriginalTransactionID(id)
            evidence.transactions[index].transactionID = TransactionID("\(id)-\(index)")
        }
        for index in evidence.renewals.indices {
            evidence.renewals[index].originalTransactionID = OriginalTransactionID(id)
        }
        return evidence
    }

    /// Answers about one customer, oldest first: a trial or none, then periods that renew, fail, recover, end, or are refunded.
    private func story(_ test: TestLedger, using random: inout Seeded) -> [Answer] {
        let (start, isTrial) = (-112.0, Bool.random(using: &random))
        func answer(_ day: Double, _ periods: Int, _ change: (inout Answer) -> Void = { _ in }) -> Answer {
            Answer(from: test.at(start), periods: periods, asOf: test.at(start + day)).but {
                $0.trial = isTrial
                change(&$0)
            }
        }
        var answers = [answer(1, 1)]
        for period in 1...3 {
            let end = Double(30 * period)
            if Bool.random(using: &random) { answers.append(answer(end - 9, period)) }
            if Bool.random(using: &random) { answers.append(answer(end - 5, period) { $0.willRenew = false }) }
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                answers.append(answer(end + 1, period) { ($0.intent, $0.inRetry) = ("2", true) })
                answers.append(answer(end + 3, period + 1))
            case 1:
                let grace = test.at(start + end + 16)
                answers.append(answer(end + 1, period) { ($0.intent, $0.inRetry, $0.graceUntil) = ("2", true, grace) })
                // The date of grace need not be said again.
                if Bool.random(using: &random) {
                    answers.append(answer(end + 2, period) { ($0.intent, $0.inRetry) = ("2", true) })
                }
                answers.append(answer(end + 3, period + 1))
            case 2:
                answers.append(answer(end + 1, period) { ($0.willRenew, $0.intent, $0.inRetry) = (false, "1", false) })
                return answers
            case 3:
                let refunded = { (day: Double, intent: String?) in
                    answer(day, period) { said in
                        (said.willRenew, said.intent) = (false, intent)
                        said.refunded = (period: period - 1, at: test.at(start + end - 4))
                    }
                }
                return answers + [refunded(end - 3, nil), refunded(end + 2, "1")]
            default: answers.append(answer(end + 1, period + 1))
            }
        }
        return answers
    }

    /// What reports know of the subscriptions whose ids begin with a word, one line a row, without their keys.
    private func figures(_ test: TestLedger, of word: String) async throws -> [String: [String]] {
        let tables = [
            "trials": """
            SELECT concat_ws(' ', f.product_id, f.started_at, f.ends_at, f.outcome, f.decided_at, f.refunded_at)
            FROM perennial.trials_as_known('infinity') f
            """,
            "renewals": """
            SELECT concat_ws(' ', f.product_id, f.expires_at, f.next_purchased_at, f.next_is_paid, f.was_awaited)
            FROM perennial.renewals_as_known('infinity') f
            """,
            "paying": """
            SELECT concat_ws(' ', f.product_id, f.paying_from, f.paying_until, f.ended_state, f.ended_reason,
                             f.monthly_milliunits) FROM perennial.paying_as_known('infinity') f
            """,
            "movements": """
            SELECT concat_ws(' ', f.day, f.kind, f.product_id, f.monthly_milliunits, f.ended_state, f.ended_reason)
            FROM perennial.mrr_movement_as_known('infinity', 'UTC') f
            """,
            "revenue": """
            SELECT concat_ws(' ', f.occurred_at, f.kind, f.product_id, f.amount_milliunits)
            FROM perennial.revenue_as_known('infinity') f
            """,
            "events": """
            SELECT f.kind FROM (
                SELECT e.kind::text, e.subscription_id AS stream_id FROM ledger.event e
                WHERE NOT e.detail ? 'moved_to' AND e.kind::text NOT LIKE 'ownership%') f
            """,
        ]
        var figures: [String: [String]] = [:]
        for (name, table) in tables {
            figures[name] = try await test.rows(
                """
                \(table) JOIN perennial.subscription_key k USING (stream_id)
                WHERE k.original_transaction_id LIKE '\(word)%' ORDER BY 1
                """)
        }
        return figures
    }

    @Test("Reports and events are the same, and every invariant holds", arguments: 1...10)
    func property(_ seed: Int) async throws {
        try await withLedger { test in
            var random = Seeded(seed: UInt64(seed))
            try await test.sell([
                CatalogProduct(
                    id: "monthly", kind: .autoRenewable, period: "P1M", priceMilliunits: 9_990, currency: "USD",
                    entitlements: ["pro"])
            ])
            let answers = story(test, using: &random)
            let (stays, moves) = (try await test.upload("stays"), try await test.upload("moves", by: "bob"))
            let count = Int.random(in: 1...2, using: &random)
            let changes = Set((1..<answers.count).shuffled(using: &random).prefix(count))
            var place = 0
            for (index, answer) in answers.enumerated() {
                if changes.contains(index) { place += 1 }
                try await tell(test, stays, evidence(answer, under: "s0", item: "s"))
                try await tell(test, moves, evidence(answer, under: "m\(place)", item: "m"))
            }
            let (stayed, moved) = (try await figures(test, of: "s"), try await figures(test, of: "m"))
            for (name, rows) in stayed {
                #expect(moved[name] == rows, "\(name), seed \(seed), moves before \(changes.sorted())")
            }
            #expect(stayed["events"]?.isEmpty == false)
            try await expectWhole(test, "seed \(seed)")
        }
    }

    @Test("A trial whose paid period has moved away is lost at its end, not undecided")
    func trialStays() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let life = { (periods: Int, asOf: Double) in
                Answer(from: test.at(-40), periods: periods, asOf: test.at(asOf)).but { $0.trial = true }
            }
            for answer in [life(1, -39), life(2, -9)] {
                try await test.check(receipt, .verified(evidence(answer, under: "1000", item: "1000")))
            }
            var moved = evidence(life(2, -1), under: "2000", item: "1000")
            (moved.transactions[0].originalTransactionID, moved.transactions[0].transactionID) = ("1000", "1000-0")
            try await test.check(receipt, .verified(moved))
            #expect(
                try await test.text("SELECT detail->>'moved_to' FROM ledger.event WHERE detail ? 'moved_to'") == "2000")
            let trials = """
                SELECT string_agg(concat_ws(' ', original_transaction_id, outcome, decided_at = ends_at), ', ')
                FROM perennial.trials_as_known('infinity')
                """
            #expect(try await test.text(trials) == "1000 lost t")
            #expect(try await test.violations() == [])
        }
    }

    @Test("A refunded period that moves and comes back leaves no hole in the events")
    func refundedAndBack() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let start = Answer(from: test.at(-70), asOf: test.at(-55)).but {
                $0.refunded = (period: 0, at: test.at(-65))
            }
            let said: [(String, Double, Bool)] = [
                ("a", -55, true), ("b", -50, true), ("a", -48, false), ("a", -47, true),
            ]
            for (id, day, renews) in said {
                let answer = start.but { ($0.asOf, $0.willRenew) = (test.at(day), renews) }
                try await tell(test, receipt, evidence(answer, under: id, item: "item"))
            }
            let events = """
                SELECT concat_ws(' ', s.original_transaction_id, e.version, e.ordinal, e.kind) FROM ledger.event e
                JOIN ledger.subscription s USING (subscription_id) WHERE e.kind::text NOT LIKE 'ownership%' ORDER BY 1
                """
            #expect(
                try await test.rows(events) == [
                    "a 1 0 subscription.started", "a 3 0 subscription.expired", "b 3 0 subscription.expired",
                ])
            try await test.expectRows(
                "SELECT original_transaction_id AS id, state, reason FROM perennial.subscription_now ORDER BY 1",
                [["a", "revoked", "refund"], ["b", "expired", "other"]])
            try await expectWhole(test)
        }
    }

    @Test(
        "An upgrade that comes with a move, and its refund, are what the observations give", arguments: [true, false])
    func upgradedWithMove(_ isRefunded: Bool) async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let start = Answer(from: test.at(-60), asOf: test.at(-55))
            try await tell(test, receipt, evidence(start, under: "a", item: "item"))
            let later = start.but { ($0.asOf, $0.willRenew) = (test.at(-40), false) }
            var second = evidence(later, under: "b", item: "item")
            var plus = second.transactions[0]
            (plus.transactionID, plus.webOrderLineItemID, plus.productID) = ("b-plus", "plus", "plus")
            plus.path = "latest_receipt_info[1]"
            (plus.purchasedAt, plus.expiresAt) = (test.at(-50), test.at(-20))
            if isRefunded { (plus.cancelledAt, plus.cancellationReason) = (test.at(-45), "0") }
            (second.transactions[0].isUpgraded, second.transactions[0].cancelledAt) = (true, test.at(-50))
            second.transactions.append(plus)
            second.renewals[0].renewal.productID = "plus"
            try await tell(test, receipt, second)
            try await expectWhole(test)
        }
    }
}
