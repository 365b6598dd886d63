import Postgres
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite(
    "Of two receipts that show one line item under two ids the newer answer has it, whichever comes first")
struct LineItemRaceTests {
    private let library = AnswerLibrary()

    /// In which order two answers are settled.
    enum Way: CaseIterable {
        case newerFirst, olderFirst, oneBatch, atOnce
    }

    /// One period alone, under an id.
    private func period(
        _ test: TestLedger, of id: OriginalTransactionID, item: String, asOf: Double, old: Bool = false
    ) -> Evidence {
        var evidence = Answer(from: test.at(-10), asOf: test.at(asOf)).evidence
        for index in evidence.transactions.indices {
            evidence.transactions[index].originalTransactionID = id
            evidence.transactions[index].transactionID = TransactionID("t\(id)")
            evidence.transactions[index].webOrderLineItemID = WebOrderLineItemID(item)
        }
        for index in evidence.renewals.indices { evidence.renewals[index].originalTransactionID = id }
        guard old else { return evidence }
        for var row in Answer(from: test.at(-95), asOf: test.at(asOf)).rows {
            (row.originalTransactionID, row.transactionID) = (id, TransactionID("old\(id)"))
            row.webOrderLineItemID = WebOrderLineItemID("old\(id)")
            evidence.transactions.append(row)
        }
        return evidence
    }

    private func settlement(_ test: TestLedger, _ receipt: ReceiptID, _ evidence: Evidence) async throws -> Settlement {
        Settlement(
            claim: try await test.claim(receipt), finding: .verified(evidence), body: library.keep(evidence),
            latestReceipt: nil)
    }

    private func settle(_ test: TestLedger, _ batch: [Settlement]) async throws {
        #expect(try await test.ledger.settlements.settleInFull(batch).failures.map(\.reason) == [])
    }

    @Test("One active subscription, one charge, one delivery", arguments: Way.allCases, [false, true])
    func twoReceipts(_ way: Way, _ isKnown: Bool) async throws {
        let rounds = way == .atOnce ? 5 : 2
        try await withLedger { test in
            try await test.sellDeliverables()
            for round in 0..<rounds {
                let (a, b) = (OriginalTransactionID("1\(round)"), OriginalTransactionID("2\(round)"))
                // The second customer of each other round is another one.
                let receipts = [
                    try await test.upload("a\(round)", by: "ann\(round)"),
                    try await test.upload("b\(round)", by: round % 2 == 0 ? "ann\(round)" : "bob\(round)"),
                ]
                if isKnown {
                    for (receipt, id) in zip(receipts, [a, b]) {
                        var before = period(test, of: id, item: "w\(round)", asOf: -9, old: true)
                        before.transactions.removeAll { $0.webOrderLineItemID == WebOrderLineItemID("w\(round)") }
                        try await settle(test, [try await settlement(test, receipt, before)])
                    }
                }
                let first = try await settlement(
                    test, receipts[0], period(test, of: a, item: "w\(round)", asOf: -3, old: isKnown))
                let second = try await settlement(
                    test, receipts[1], period(test, of: b, item: "w\(round)", asOf: -4, old: isKnown))
                try await settle(test, newer: first, older: second, way)
                // Asking again changes nothing.
                try await settle(
                    test,
                    [
                        try await settlement(
                            test, receipts[0], period(test, of: a, item: "w\(round)", asOf: -2, old: isKnown))
                    ])
            }
            try await expectOneEach(test, rounds)
            try await test.expectRows(
                """
                SELECT count(*) AS newest FROM perennial.subscription_now
                WHERE state = 'active' AND original_transaction_id LIKE '1%'
                """, [[.count(rounds)]])
            if way == .newerFirst {
                try await test.expectRows(
                    "SELECT count(*) AS others FROM perennial.subscription_now WHERE entitled AND state <> 'active'",
                    [[0]])
                try await test.expectRows(
                    """
                    SELECT count(*) AS told FROM ledger.event e JOIN ledger.subscription s USING (subscription_id)
                    WHERE s.original_transaction_id LIKE '2%' AND e.kind::text NOT LIKE 'ownership%'
                    """, [[.count(isKnown ? rounds : 0)]])
            }
            #expect(try await test.violations().map { "\($0)" } == [])
            #expect(try await test.differences(from: library) == [])
        }
    }

    private func settle(_ test: TestLedger, newer first: Settlement, older second: Settlement, _ way: Way) async throws
    {
        switch way {
        case .newerFirst:
            try await settle(test, [first])
            try await settle(test, [second])
        case .olderFirst:
            try await settle(test, [second])
            try await settle(test, [first])
        case .oneBatch: try await settle(test, [first, second])
        case .atOnce:
            async let one: Void = settle(test, [first])
            async let other: Void = settle(test, [second])
            _ = try await (one, other)
        }
    }

    private func expectOneEach(_ test: TestLedger, _ rounds: Int, _ place: Comment? = nil) async throws {
        try await test.expectRows(
            """
            SELECT count(*) AS active, count(DISTINCT substr(original_transaction_id, 2)) AS rounds
            FROM perennial.subscription_now WHERE state = 'active'
            """, [[.count(rounds), .count(rounds)]], place)
        try await test.expectRows(
            """
            SELECT count(*) AS charges, count(DISTINCT substr(c.original_transaction_id, 2)) AS rounds
            FROM ledger.charges_of(clock_timestamp(), NULL) c WHERE c.purchased_at > now() - interval '20 days'
            """, [[.count(rounds), .count(rounds)]], place)
        _ = try await test.deliveries()
        try await test.expectRows(
            """
            SELECT count(*) AS deliveries, count(DISTINCT p.web_order_line_item_id) AS items
            FROM ledger.delivery d JOIN ledger.period p USING (period_id)
            WHERE p.purchased_at > now() - interval '20 days'
            """, [[.count(rounds), .count(rounds)]], place)
        // Who was given it has access, whoever owns where it is now.
        try await test.expectRows(
            """
            SELECT count(*) AS payers FROM ledger.delivery d
            JOIN ledger.period p USING (period_id) JOIN ledger.customer c USING (customer_id)
            JOIN perennial.entitlement_now e ON e.customer = c.name AND e.entitlement = 'monthly' AND e.granted
            WHERE p.purchased_at > now() - interval '20 days'
            """, [[.count(rounds)]], place)
    }

    /// An answer that shows one period under these ids.
    private func period(
        _ test: TestLedger, of ids: [OriginalTransactionID], item: String, asOf: Double, old: Bool
    ) -> Evidence {
        ids.dropFirst().reduce(into: period(test, of: ids[0], item: item, asOf: asOf, old: old)) { evidence, id in
            let other = period(test, of: id, item: item, asOf: asOf, old: old)
            evidence.transactions += other.transactions
            evidence.renewals += other.renewals
        }
    }

    /// Draws up to four answers, now and then in another order than Apple gave them, and the last one again, days later.
    private func drawn(
        _ test: TestLedger, _ ids: [OriginalTransactionID], item: String, old: Bool, using random: inout Seeded
    ) -> [(receipt: Int, evidence: Evidence)] {
        var told: [(receipt: Int, evidence: Evidence)] = []
        for step in 0..<Int.random(in: 1...4, using: &random) {
            let places = [[0], [1], [0, 1], [1, 0]].randomElement(using: &random) ?? [0]
            let evidence = period(test, of: places.map { ids[$0] }, item: item, asOf: Double(step - 9), old: old)
            told.append((places[0], evidence))
        }
        if Int.random(in: 0..<3, using: &random) == 0 { told.shuffle(using: &random) }
        let last = told[told.count - 1]
        return told + [(last.receipt, last.evidence.given(at: test.at(-2)))]
    }

    @Test("However answers show a line item, under one id, the other or both, it is one", arguments: 1...6)
    func anyAnswers(_ seed: Int) async throws {
        try await withLedger(policy: .keep) { test in
            var random = Seeded(seed: UInt64(seed))
            try await test.sellDeliverables()
            for round in 0..<4 {
                let (item, isKnown) = ("w\(round)", Bool.random(using: &random))
                let ids = [OriginalTransactionID("1\(round)"), OriginalTransactionID("2\(round)")]
                let second = Bool.random(using: &random) ? "ann\(round)" : "bob\(round)"
                let receipts = [
                    try await test.upload("a\(round)", by: "ann\(round)"),
                    try await test.upload("b\(round)", by: second),
                ]
                for (receipt, id) in zip(receipts, ids) where isKnown {
                    var before = period(test, of: id, item: item, asOf: -9.9, old: true)
                    before.transactions.removeAll { $0.webOrderLineItemID == WebOrderLineItemID(item) }
                    try await settle(test, [try await settlement(test, receipt, before)])
                }
                var told = drawn(test, ids, item: item, old: isKnown, using: &random)[...]
                while let first = told.popFirst() {
                    let one = try await settlement(test, receipts[first.receipt], first.evidence)
                    if let next = told.first, next.receipt != first.receipt, Bool.random(using: &random) {
                        told.removeFirst()
                        let other = try await settlement(test, receipts[next.receipt], next.evidence)
                        let way = Way.allCases.randomElement(using: &random) ?? .atOnce
                        try await settle(test, newer: other, older: one, way)
                    } else {
                        try await settle(test, [one])
                    }
                    _ = try await test.deliveries()
                    let due = try await test.ledger.deliveries.read(
                        of: test.app.bundleID, state: .due, after: 0, limit: 100
                    ).deliveries
                    if !due.isEmpty, Bool.random(using: &random) { try await test.acknowledgeAll() }
                }
                try await expectOneEach(test, round + 1, "seed \(seed), round \(round)")
            }
            #expect(try await test.violations().map { "\($0)" } == [], "seed \(seed)")
            #expect(try await test.differences(from: library) == [], "seed \(seed)")
        }
    }
}
