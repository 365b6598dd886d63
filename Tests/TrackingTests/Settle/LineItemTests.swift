import Postgres
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite(
    "A period that Apple shows under another id moves there with its charge, order and delivery")
struct LineItemTests {
    private let library = AnswerLibrary()

    private func tell(_ test: TestLedger, _ receipt: ReceiptID, _ evidence: Evidence) async throws {
        let settlement = Settlement(
            claim: try await test.claim(receipt), finding: .verified(evidence), body: library.keep(evidence),
            latestReceipt: nil)
        let settled = try await test.ledger.settlements.settleInFull([settlement])
        #expect(settled.failures.map(\.reason) == [])
    }

    /// The period of a new subscription, as Apple shows it first.
    private func first(_ test: TestLedger, asOf: Double) -> Answer {
        Answer(from: test.at(-10), asOf: test.at(asOf)).but { $0.subscription = "2000" }
    }

    /// The same period under the id of an earlier subscription; `others` stay beside it.
    private func moved(_ test: TestLedger, asOf: Double, others: [TransactionRow] = []) -> Evidence {
        var evidence = first(test, asOf: asOf).evidence
        for index in evidence.transactions.indices {
            evidence.transactions[index].originalTransactionID = "1000"
            evidence.transactions[index].transactionID = "restored"
        }
        for index in evidence.renewals.indices { evidence.renewals[index].originalTransactionID = "1000" }
        evidence.transactions += others + old(test, asOf: asOf).rows
        return evidence
    }

    private func old(_ test: TestLedger, asOf: Double) -> Answer {
        Answer(from: test.at(-95), asOf: test.at(asOf)).but { ($0.willRenew, $0.intent) = (false, "1") }
    }

    private func expectOneCharge(_ test: TestLedger, deliveries: [String]) async throws {
        let states = """
            SELECT original_transaction_id AS id, state, reason, entitled FROM perennial.subscription_now ORDER BY 1
            """
        try await test.expectRows(states, [["1000", "active", nil, true], ["2000", "expired", "other", false]])
        let charges = """
            SELECT c.original_transaction_id AS id, count(*) AS charges FROM ledger.charges_of(clock_timestamp(), NULL) c
            WHERE c.purchased_at > now() - interval '20 days' GROUP BY 1
            """
        try await test.expectRows(charges, [["1000", 1]])
        #expect(try await test.deliveries() == deliveries)
        #expect(
            try await test.text("SELECT string_agg(DISTINCT original_transaction_id, ' ') FROM ledger.delivery")
                == "1000")
        #expect(try await test.violations().map { "\($0)" } == [])
        #expect(try await test.differences(from: library) == [])
    }

    @Test(
        "One active subscription, one charge, one delivery, no second announcement", arguments: [false, true],
        [false, true])
    func one(_ isEverywhere: Bool, _ isAcknowledged: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let receipt = try await test.upload("a")
            var start = first(test, asOf: -9).evidence
            start.transactions += old(test, asOf: -9).rows
            try await tell(test, receipt, start)
            let due = try await test.deliveries()
            #expect(due.count == 2)
            if isAcknowledged { try await test.acknowledgeAll() }
            let deliveries = try await test.deliveries()
            // A device's receipt may still show the period under the first id.
            let device = first(test, asOf: -9.5).rows.map { row in
                var row = row
                row.source = .deviceReceipt
                return row
            }
            for asOf in [-3.0, -2] {
                try await tell(test, receipt, moved(test, asOf: asOf, others: isEverywhere ? [] : device))
                try await expectOneCharge(test, deliveries: deliveries)
            }
            try await test.expectRows(
                """
                SELECT e.kind::text AS kind, s.original_transaction_id AS id, e.detail->>'moved_to' AS moved
                FROM ledger.event e JOIN ledger.subscription s USING (subscription_id)
                WHERE e.kind::text NOT LIKE 'ownership%' ORDER BY 1, 2
                """,
                [
                    ["subscription.expired", "2000", "1000"], ["subscription.started", "1000", nil],
                    ["subscription.started", "2000", nil],
                ])
            #expect(try await test.entitled()[0] == true)
            // A later refund takes back once, from the customer who got it.
            if isAcknowledged {
                let refunded = moved(test, asOf: -1)
                var evidence = refunded
                for index in evidence.transactions.indices
                where evidence.transactions[index].transactionID == "restored" {
                    evidence.transactions[index].cancelledAt = test.at(-1.5)
                    evidence.transactions[index].cancellationReason = "1"
                }
                try await tell(test, receipt, evidence)
                #expect(try await test.deliveries() == deliveries + ["2 refund due ann"])
            }
        }
    }

    @Test("The successor gets the owner of the period; where another has it, who paid keeps access to the end")
    func owners() async throws {
        try await withLedger(policy: .keep) { test in
            try await tell(test, try await test.upload("b", by: "bob"), old(test, asOf: -40).evidence)
            let receipt = try await test.upload("a")
            try await tell(test, receipt, first(test, asOf: -9).evidence)
            try await tell(test, receipt, moved(test, asOf: -3))
            try await test.expectRows(
                """
                SELECT original_transaction_id AS id, state, reason, entitled, customer
                FROM perennial.subscription_now ORDER BY 1
                """,
                [
                    ["1000", "active", nil, true, "bob"],
                    ["2000", "awaiting_renewal", "replacement", true, "ann"],
                ])
            try await tell(test, receipt, moved(test, asOf: -2))
            try await test.expectRows(
                """
                SELECT c.name, e.detail->>'cause' AS cause FROM ledger.event e JOIN ledger.customer c USING (customer_id)
                WHERE e.kind = 'entitlements.changed'
                """, [["bob", "move"]])
            #expect(try await test.violations().map { "\($0)" } == [])
        }
        try await withLedger(policy: .keep) { test in
            let receipt = try await test.upload("a")
            try await tell(test, receipt, first(test, asOf: -9).evidence)
            // Another receipt shows the move first: nothing was known of the successor.
            var alone = moved(test, asOf: -3)
            alone.transactions.removeAll { $0.transactionID != "restored" }
            try await tell(test, try await test.upload("b", by: "bob"), alone)
            try await test.expectRows(
                "SELECT original_transaction_id AS id, state, customer FROM perennial.subscription_now ORDER BY 1",
                [["1000", "active", "ann"], ["2000", "expired", "ann"]])
            #expect(try await test.violations().map { "\($0)" } == [])
        }
    }

    @Test("Who paid keeps access to the end, also where the upload that shows the move takes the successor")
    func taken() async throws {
        try await withLedger(policy: .transfer) { test in
            try await test.sellDeliverables()
            try await tell(test, try await test.upload("a"), first(test, asOf: -9).evidence)
            #expect(try await test.deliveries() == ["1 purchase due ann"])
            var alone = moved(test, asOf: -3)
            alone.transactions.removeAll { $0.transactionID != "restored" }
            try await tell(test, try await test.upload("b", by: "bob"), alone)
            #expect(try await test.deliveries() == ["1 purchase due ann"])
            // Nothing was known of the successor: who took it is its first owner.
            try await test.expectRows(
                """
                SELECT e.kind::text AS kind, c.name FROM ledger.event e JOIN ledger.customer c USING (customer_id)
                WHERE e.kind::text LIKE 'ownership%' OR e.kind = 'entitlements.changed' ORDER BY 1, 2
                """,
                [["entitlements.changed", "bob"], ["ownership.assigned", "ann"], ["ownership.assigned", "bob"]])
            try await test.expectRows(
                """
                SELECT original_transaction_id AS id, state, reason, entitled, customer
                FROM perennial.subscription_now ORDER BY 1
                """,
                [
                    ["1000", "active", nil, true, "bob"],
                    ["2000", "awaiting_renewal", "replacement", true, "ann"],
                ])
            #expect(try await test.violations().map { "\($0)" } == [])
            #expect(try await test.differences(from: library) == [])
            // Of one customer's two sources of the same end the one that goes on is shown.
            _ = try await test.ledger.customers.merge(
                "bob", into: "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "logged in"))
            #expect(try await test.entitled()[2] == "active")
            #expect(try await test.violations().map { "\($0)" } == [])
        }
    }

    @Test("Who paid keeps access over several moves, an owner in between does not, and a reversed refund gives it back")
    func severalMoves() async throws {
        try await withLedger(policy: .transfer) { test in
            func alone(_ id: OriginalTransactionID, _ asOf: Double) -> Evidence {
                var evidence = moved(test, asOf: asOf)
                evidence.transactions.removeAll { $0.transactionID != "restored" }
                for index in evidence.transactions.indices { evidence.transactions[index].originalTransactionID = id }
                for index in evidence.renewals.indices { evidence.renewals[index].originalTransactionID = id }
                return evidence
            }
            let states = """
                SELECT original_transaction_id AS id, state, entitled, customer FROM perennial.subscription_now ORDER BY 1
                """
            func expectAccess() async throws {
                try await test.expectRows(
                    states,
                    [
                        ["1000", "active", true, "cat"], ["2000", "awaiting_renewal", true, "ann"],
                        ["3000", "expired", false, "bob"],
                    ])
            }
            try await test.sellDeliverables()
            try await tell(test, try await test.upload("a"), first(test, asOf: -9).evidence)
            _ = try await test.deliveries()
            try await tell(test, try await test.upload("b", by: "bob"), alone("3000", -7))
            let receipt = try await test.upload("c", by: "cat")
            try await tell(test, receipt, alone("1000", -5))
            try await expectAccess()
            let reasons = "SELECT string_agg(DISTINCT cancellation_reason, ',') FROM ledger.period"
            #expect(try await test.text(reasons) == "moved to 1000")
            #expect(try await test.violations().map { "\($0)" } == [])
            try await tell(test, receipt, refunded(alone("1000", -4), "restored", at: test.at(-4.5)))
            try await test.expectRows(
                states,
                [
                    ["1000", "revoked", false, "cat"], ["2000", "expired", false, "ann"],
                    ["3000", "expired", false, "bob"],
                ])
            #expect(try await test.differences(from: library) == [])
            for asOf in [-3.0, -2] { try await tell(test, receipt, alone("1000", asOf)) }
            try await expectAccess()
            try await test.expectRows(
                """
                SELECT c.name, count(*) AS changes FROM ledger.event e JOIN ledger.customer c USING (customer_id)
                WHERE e.kind = 'entitlements.changed' AND e.detail->>'cause' = 'move' GROUP BY 1 ORDER BY 1
                """, [["ann", 1], ["bob", 1], ["cat", 1]])
            #expect(try await test.violations().map { "\($0)" } == [])
            #expect(try await test.differences(from: library) == [])
        }
    }

    private func refunded(_ evidence: Evidence, _ transaction: TransactionID, at instant: Instant) -> Evidence {
        var evidence = evidence
        for index in evidence.transactions.indices where evidence.transactions[index].transactionID == transaction {
            (evidence.transactions[index].cancelledAt, evidence.transactions[index].cancellationReason) = (instant, "1")
        }
        return evidence
    }

    private let refunds = """
        SELECT e.kind::text AS kind, s.original_transaction_id AS id FROM ledger.event e
        JOIN ledger.subscription s USING (subscription_id) WHERE e.kind::text LIKE 'refund.%' ORDER BY e.event_id
        """

    @Test("A refunded period moves as refunded, and a second answer takes the refund back", arguments: [false, true])
    func refundedBefore(_ isOfAnother: Bool) async throws {
        try await withLedger(policy: .keep) { test in
            try await test.sellDeliverables()
            if isOfAnother {
                try await tell(test, try await test.upload("b", by: "bob"), old(test, asOf: -40).evidence)
            }
            let receipt = try await test.upload("a")
            let transaction = try #require(first(test, asOf: -9).rows.first?.transactionID)
            var start = first(test, asOf: -9).evidence
            if !isOfAnother { start.transactions += old(test, asOf: -9).rows }
            try await tell(test, receipt, start)
            _ = try await test.deliveries()
            try await test.acknowledgeAll()
            try await tell(test, receipt, refunded(first(test, asOf: -8).evidence, transaction, at: test.at(-8.5)))
            try await test.acknowledgeAll()
            let deliveries = try await test.deliveries()
            try await tell(test, receipt, moved(test, asOf: -3))
            #expect(try await test.deliveries() == deliveries)
            try await test.expectRows(
                "SELECT original_transaction_id AS id, state, entitled FROM perennial.subscription_now ORDER BY 1",
                [["1000", "revoked", false], ["2000", "expired", false]])
            try await test.expectRows(refunds, [["refund.granted", "2000"]])
            try await test.expectRows(
                """
                SELECT c.original_transaction_id AS id, count(*) AS charges, count(c.cancelled_at) AS refunds
                FROM ledger.charges_of(clock_timestamp(), NULL) c WHERE c.purchased_at > now() - interval '20 days'
                GROUP BY 1
                """, [["1000", 1, 1]])
            #expect(try await test.violations().map { "\($0)" } == [])
            #expect(try await test.differences(from: library) == [])
            try await tell(test, receipt, moved(test, asOf: -2))
            try await test.expectRows(refunds, [["refund.granted", "2000"], ["refund.reversed", "1000"]])
            #expect(try await test.deliveries() == deliveries + ["3 refund_reversed due ann"])
            #expect(try await test.violations().map { "\($0)" } == [])
            #expect(try await test.differences(from: library) == [])
        }
    }

    @Test("A refund that comes with the move has its event, and nobody keeps access by it")
    func refundedMeanwhile() async throws {
        try await withLedger(policy: .keep) { test in
            try await tell(test, try await test.upload("b", by: "bob"), old(test, asOf: -40).evidence)
            let receipt = try await test.upload("a")
            try await tell(test, receipt, first(test, asOf: -9).evidence)
            let answer = refunded(moved(test, asOf: -3), "restored", at: test.at(-4))
            try await tell(test, receipt, answer)
            try await test.expectRows(
                "SELECT original_transaction_id AS id, state, entitled FROM perennial.subscription_now ORDER BY 1",
                [["1000", "revoked", false], ["2000", "expired", false]])
            try await test.expectRows(refunds, [["refund.granted", "1000"]])
            #expect(try await test.violations().map { "\($0)" } == [])
            #expect(try await test.differences(from: library) == [])
            try await test.run("UPDATE ledger.event SET kind = 'subscription.shortened' WHERE kind = 'refund.granted'")
            let found = try await test.violations([.events]).map { "\($0)" }
            #expect(
                found.count == 1 && found.allSatisfy { $0.contains("which came from 2000, has no event") }, "\(found)")
        }
    }

    @Test("The order that a period pays goes with it", arguments: [false, true])
    func order(_ isAcknowledged: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place("monthly", days: -10)
            let receipt = try await test.upload("a")
            func carrying(_ evidence: Evidence) -> Evidence {
                var evidence = evidence
                evidence.transactions[0].appAccountToken = order.appAccountToken
                return evidence
            }
            try await tell(test, receipt, carrying(first(test, asOf: -9).evidence))
            if isAcknowledged {
                _ = try await test.deliveries()
                try await test.acknowledgeAll()
            }
            let log = try await test.log(of: order)
            let deliveries = try await test.deliveries()
            for asOf in [-3.0, -2] { try await tell(test, receipt, carrying(moved(test, asOf: asOf))) }
            #expect(try await test.log(of: order) == log)
            try await test.expectRows(
                """
                SELECT s.original_transaction_id AS id, d.order_id IS NOT NULL AS is_tied, p.subscription_id = d.subscription_id AS together
                FROM ledger.purchase_order p JOIN ledger.subscription s USING (subscription_id)
                JOIN ledger.delivery d ON d.order_id = p.order_id
                """, [["1000", true, true]])
            #expect(Array(try await test.deliveries().prefix(deliveries.count)) == deliveries)
            #expect(try await test.violations().map { "\($0)" } == [])
        }
    }

    @Test("It comes back by the second answer, with its order and its delivery, and a rebuild says the same")
    func back() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let receipt = try await test.upload("a")
            var start = first(test, asOf: -9).evidence
            start.transactions += old(test, asOf: -9).rows
            try await tell(test, receipt, start)
            let deliveries = try await test.deliveries()
            func again(_ asOf: Double) -> Evidence {
                var evidence = first(test, asOf: asOf).evidence
                evidence.transactions += old(test, asOf: asOf).rows
                return evidence
            }
            try await tell(test, receipt, moved(test, asOf: -3))
            try await tell(test, receipt, again(-2.999))
            try await expectOneCharge(test, deliveries: deliveries)
            try await tell(test, receipt, again(-2))
            try await test.expectRows(
                """
                SELECT original_transaction_id AS id, state, reason, entitled FROM perennial.subscription_now ORDER BY 1
                """, [["1000", "expired", "other", false], ["2000", "active", nil, true]])
            try await test.expectRows(
                """
                SELECT c.name, e.detail->>'cause' AS cause FROM ledger.event e JOIN ledger.customer c USING (customer_id)
                WHERE e.kind = 'entitlements.changed'
                """, [["ann", "move"]])
            #expect(try await test.deliveries() == deliveries)
            try await test.expectRows(
                "SELECT original_transaction_id AS id, count(*) AS n FROM ledger.delivery GROUP BY 1 ORDER BY 1",
                [["1000", 1], ["2000", 1]])
            #expect(try await test.violations().map { "\($0)" } == [])
            #expect(try await test.differences(from: library) == [])
        }
    }

    @Test("Under whichever ids answers show it, the observations give what is stored", arguments: 1...12)
    func underSeveral(_ seed: Int) async throws {
        try await withLedger { test in
            var random = Seeded(seed: UInt64(seed))
            let receipts = [try await test.upload("a"), try await test.upload("b")]
            for hour in 0..<Int.random(in: 3...6, using: &random) {
                let ids = ["1000", "2000", "3000"].shuffled(using: &random)
                    .prefix(Int.random(in: 1...2, using: &random)).map { OriginalTransactionID($0) }
                var said = first(test, asOf: -9 + Double(hour) / 24).evidence
                let (rows, renewals) = (said.transactions, said.renewals)
                said.transactions = ids.flatMap { id in
                    rows.map { row in
                        var row = row
                        (row.originalTransactionID, row.transactionID) = (id, TransactionID("t\(id)"))
                        return row
                    }
                }
                said.renewals = ids.flatMap { id in
                    renewals.map { renewal in
                        var renewal = renewal
                        renewal.originalTransactionID = id
                        return renewal
                    }
                }
                try await tell(test, receipts[Int.random(in: 0...1, using: &random)], said)
                #expect(try await test.violations().map { "\($0)" } == [], "seed \(seed), hour \(hour)")
                #expect(try await test.differences(from: library) == [], "seed \(seed), hour \(hour)")
            }
        }
    }

    @Test("It comes back without the refund that it had elsewhere, which its events say")
    func backWithoutRefund() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let receipt = try await test.upload("a")
            func start(_ asOf: Double) -> Evidence {
                var evidence = first(test, asOf: asOf).evidence
                evidence.transactions += old(test, asOf: asOf).rows
                return evidence
            }
            try await tell(test, receipt, start(-9))
            _ = try await test.deliveries()
            try await test.acknowledgeAll()
            try await tell(test, receipt, moved(test, asOf: -6))
            try await tell(test, receipt, refunded(moved(test, asOf: -5), "restored", at: test.at(-5.5)))
            _ = try await test.deliveries()
            try await test.acknowledgeAll()
            for asOf in [-4.0, -3] { try await tell(test, receipt, start(asOf)) }
            try await test.expectRows(refunds, [["refund.granted", "1000"], ["refund.reversed", "2000"]])
            #expect(try await test.deliveries().last == "3 refund_reversed due ann")
            #expect(try await test.violations().map { "\($0)" } == [])
            #expect(try await test.differences(from: library) == [])
        }
    }
}
