import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

private let reused = OncePerSuite<ReusedDatabase>.database()

@Suite(
    "Of two receipts that show one line item under two ids the newer answer has it, whichever comes first", .serialized,
    reused)
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
        try await withLedger(in: reused) { test in
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
            #expect(try await rebuilt(test) == [])
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

    private func expectOneEach(_ test: TestLedger, _ rounds: Int) async throws {
        try await test.expectRows(
            """
            SELECT count(*) FILTER (WHERE state = 'active') AS active,
                   count(*) FILTER (WHERE state = 'active' AND original_transaction_id LIKE '1%') AS newest
            FROM perennial.subscription_now
            """, [[.count(rounds), .count(rounds)]])
        try await test.expectRows(
            """
            SELECT count(*) AS charges, count(DISTINCT c.original_transaction_id) AS ids
            FROM ledger.charges_of(clock_timestamp(), NULL) c WHERE c.purchased_at > now() - interval '20 days'
            """, [[.count(rounds), .count(rounds)]])
        _ = try await test.deliveries()
        try await test.expectRows(
            """
            SELECT count(*) AS deliveries, count(DISTINCT p.web_order_line_item_id) AS items
            FROM ledger.delivery d JOIN ledger.period p USING (period_id)
            WHERE p.purchased_at > now() - interval '20 days'
            """, [[.count(rounds), .count(rounds)]])
    }

    /// What a rebuild from the stored answers would change.
    private func rebuilt(_ test: TestLedger) async throws -> [String] {
        var differences: [String] = []
        var place: RebuildPlace? = .start
        while let here = place {
            let batch = try await test.ledger.operations.rebuild(
                from: here, limit: 10, RebuildScope(), correcting: false, reading: library.reading)
            differences += batch.differences.map { "\($0)" }
            place = batch.next
        }
        return differences
    }
}
