import Subscriptions
import Testing

@testable import Ledger

@Suite("Statuses say nothing about one-time purchases, and a history says what changed")
struct StatusesAnswerTests {
    private static let statuses = ServerRead(beginsAtStart: false, revision: nil, goesOn: false)

    /// A transaction by which a customer with a subscription and coins is asked about; everything was read once.
    private func read(_ test: TestLedger) async throws -> ReceiptID {
        let upload = Upload(
            appID: test.app.id, customer: "ann", receipt: Array("1000".utf8), imported: false, form: .transactionID,
            transactionID: "1000")
        let receipt = try #require(try await test.ledger.intake.store([upload]).first).receiptID
        var evidence = Answer(from: test.at(-9), asOf: test.at(-1)).evidence
        guard case .verified(let coins) = purchase("77", at: test.at(-2), asOf: test.at(-1)) else { return receipt }
        evidence.transactions += coins.transactions
        try await settle(
            test, receipt, evidence, ServerRead(beginsAtStart: true, revision: "r1", goesOn: false))
        return receipt
    }

    private func settle(
        _ test: TestLedger, _ receipt: ReceiptID, _ evidence: Evidence, _ read: ServerRead
    ) async throws {
        let settlement = Settlement(
            claim: try await test.claim(receipt), finding: .verified(evidence), body: Array("{}".utf8),
            latestReceipt: nil, server: read)
        let batch = try await test.ledger.settlements.settleInFull([settlement])
        #expect(batch.failures.map(\.reason) == [])
    }

    /// How the subscription stands, without the coins.
    private func head(_ test: TestLedger, asOf: Double) -> Evidence {
        var evidence = Answer(from: test.at(-9), asOf: test.at(asOf)).evidence
        evidence.coverage = .head
        evidence.statuses = ["1000": .active]
        return evidence
    }

    private func goesOn(_ test: TestLedger, _ receipt: ReceiptID) async throws -> Bool {
        let claim = try await test.claim(receipt)
        try await test.ledger.claims.release([claim])
        return claim.history.goesOn
    }

    @Test("Statuses leave nothing out, and the purchase keeps the check that it waits for")
    func keepsItsCheck() async throws {
        try await withLedger { test in
            let receipt = try await read(test)
            try await settle(test, receipt, head(test, asOf: -0.5), Self.statuses)
            try await test.expectRows(
                "SELECT count(*) FROM ledger.receipt_purchase WHERE omitted_at IS NOT NULL", [[0]])
            try await test.expectRows(
                """
                SELECT s.due_at <= p.next_check_at FROM ledger.purchase p
                JOIN ledger.poll_schedule s ON s.receipt_id = p.polled_by
                """, [[true]])
            #expect(try await goesOn(test, receipt) == false)
            try await test.expectSound()
        }
    }

    @Test("A purchase whose check is due has the history read on, and then waits for its next check")
    func readsOn() async throws {
        try await withLedger { test in
            let receipt = try await read(test)
            try await test.run("UPDATE ledger.purchase SET next_check_at = now() - interval '1 minute'")
            try await settle(test, receipt, head(test, asOf: -0.5), Self.statuses)
            try await test.expectRows(
                "SELECT due_at < now() + interval '5 seconds' FROM ledger.poll_schedule", [[true]])
            #expect(try await goesOn(test, receipt))
            // The history has nothing new about the coins.
            var news = head(test, asOf: -0.4)
            (news.coverage, news.confirmsOtherPurchases) = (.whole, true)
            try await settle(test, receipt, news, ServerRead(beginsAtStart: false, revision: "r2", goesOn: false))
            #expect(try await goesOn(test, receipt) == false)
            try await test.expectRows(
                """
                SELECT p.next_check_at > now() + interval '1 hour', s.due_at <= p.next_check_at, l.omitted_at IS NULL
                FROM ledger.purchase p JOIN ledger.poll_schedule s ON s.receipt_id = p.polled_by
                JOIN ledger.receipt_purchase l USING (purchase_id)
                """, [[true, true, true]])
            try await test.expectSound()
        }
    }

    @Test("An answer that names no subscription of a customer who has one is not counted, and everything is read next")
    func namesNone() async throws {
        try await withLedger { test in
            let receipt = try await read(test)
            let nothing = Evidence(environment: .production, bundleID: "com.example.app", asOf: test.at(-0.5))
            try await settle(test, receipt, nothing, ServerRead(beginsAtStart: false, revision: "r2", goesOn: false))
            try await test.expectRows(
                "SELECT history_revision, reads_whole, outcome FROM ledger.receipt", [["r1", true, "indeterminate"]])
            try await test.expectSound()
        }
    }

    @Test("A history that confirms the purchases is another answer than statuses with the same rows, for a rebuild too")
    func sameRows() async throws {
        try await withLedger { test in
            let receipt = try await read(test)
            try await settle(test, receipt, head(test, asOf: -0.5), Self.statuses)
            let clock = "SELECT as_of FROM ledger.purchase"
            let before = try await test.text(clock)
            var history = head(test, asOf: -0.4)
            (history.coverage, history.confirmsOtherPurchases) = (.whole, true)
            try await settle(test, receipt, history, ServerRead(beginsAtStart: false, revision: "r2", goesOn: false))
            #expect(try await test.text("SELECT count(*) FROM ledger.observation") == "3")
            let confirmed = try await test.text(clock)
            #expect(confirmed != before)
            try await settle(test, receipt, head(test, asOf: -0.3), Self.statuses)
            #expect(try await test.text(clock) == confirmed, "statuses say nothing about it")
            try await test.expectSound()
        }
    }
}
