import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A whole answer of the Server API: statuses, and the history since the stored revision")
struct WholeAnswerTests {
    private func receipt(_ test: TestLedger, by customer: String = "ann") async throws -> ReceiptID {
        let upload = Upload(
            appID: test.app.id, customer: customer, receipt: Array("1000".utf8), imported: false,
            form: .signedTransaction, transactionID: "1000")
        return try #require(try await test.ledger.intake.store([upload]).first).receiptID
    }

    /// A signed transaction of the usual subscription, by its period.
    private func row(
        _ test: TestLedger, _ period: Int, _ source: EvidenceSource, asOf: Double, refunded: Bool = false
    ) -> TransactionRow {
        var answer = Answer(from: test.at(-40), periods: 3, asOf: test.at(asOf))
        if refunded { answer.refunded = (period, test.at(-0.95)) }
        var row = answer.rows[period]
        (row.source, row.path) = (source, source == .statuses ? "statuses.data[0].x" : "history[0].x[\(period)]")
        return row
    }

    /// An answer: the history's periods and purchases, and the period of the statuses.
    private func settle(
        _ test: TestLedger, _ receipt: ReceiptID, history: [TransactionRow], statuses: Int?, asOf: Double,
        revision: String, fromStart: Bool = false, goesOn: Bool = false
    ) async throws -> Settled {
        var evidence = Answer(from: test.at(-40), asOf: test.at(asOf)).evidence
        evidence.transactions = history + (statuses.map { [row(test, $0, .statuses, asOf: asOf)] } ?? [])
        if statuses == nil { evidence.renewals = [] }
        evidence.confirmsOtherPurchases = !fromStart && !goesOn
        let settlement = Settlement(
            claim: try await test.claim(receipt), finding: .verified(evidence), body: Array("{}".utf8),
            latestReceipt: nil, server: ServerRead(beginsAtStart: fromStart, revision: revision, goesOn: goesOn))
        let batch = try await test.ledger.settlements.settleInFull([settlement])
        #expect(batch.failures.map(\.reason) == [])
        return try #require(batch.settled.first)
    }

    private func coins(_ test: TestLedger, _ id: String, asOf: Double) throws -> TransactionRow {
        guard case .verified(let evidence) = purchase(id, at: test.at(-2), asOf: test.at(asOf)) else {
            throw LedgerError(.mismatch, "no purchase")
        }
        var row = try #require(evidence.transactions.first)
        row.source = .signedText
        return row
    }

    /// Everything was read once: two periods and coins.
    private func read(_ test: TestLedger, by customer: String = "ann") async throws -> ReceiptID {
        let receipt = try await receipt(test, by: customer)
        let history = try [0, 1].map { row(test, $0, .signedText, asOf: -1) } + [coins(test, "77", asOf: -1)]
        _ = try await settle(
            test, receipt, history: history, statuses: 1, asOf: -1, revision: "r1", fromStart: true)
        return receipt
    }

    /// The seconds until the next check.
    private static let wait = "SELECT round(extract(epoch FROM due_at - now()))::int FROM ledger.poll_schedule"
    private static let standing =
        "SELECT r.history_revision, r.outcome, s.periods FROM ledger.receipt r, ledger.subscription s"

    @Test("Statuses that name what neither the history nor the ledger holds are no answer: all is asked again soon")
    func lagging() async throws {
        try await withLedger { test in
            let receipt = try await read(test)
            let settled = try await settle(test, receipt, history: [], statuses: 2, asOf: -0.5, revision: "r2")
            #expect(settled.outcome == .indeterminate)
            try await test.expectRows(Self.standing, [["r1", "indeterminate", 2]])
            try await test.expectRows(Self.wait, [[60]])
            for minutes in Array(repeating: 1, count: 9) + [2, 3] {
                _ = try await settle(test, receipt, history: [], statuses: 2, asOf: -0.49, revision: "r2")
                try await test.expectRows(Self.wait, [[.number(Double(minutes) * 60)]])
            }
            let news = [row(test, 2, .signedText, asOf: -0.4)]
            #expect(
                try await settle(test, receipt, history: news, statuses: 2, asOf: -0.4, revision: "r2").outcome
                    == .verified)
            try await test.expectRows(Self.standing, [["r2", "verified", 3]])
            try await test.expectSound()
        }
    }

    @Test("So it is at first sight, whoever waits: neither sooner than a minute nor later")
    func laggingAtFirst() async throws {
        try await withLedger { test in
            for round in 0..<4 {
                let receipt = try await receipt(test)
                let first = [row(test, 0, .signedText, asOf: -1)]
                let settled = try await settle(
                    test, receipt, history: first, statuses: 1, asOf: -1, revision: "r1", fromStart: true)
                #expect(settled.outcome == .indeterminate)
                try await test.expectRows(Self.wait, [[60]], "round \(round)")
            }
        }
    }

    @Test("A period that the statuses name by another id is known by its line item")
    func anotherID() async throws {
        try await withLedger { test in
            let receipt = try await read(test)
            var restored = row(test, 1, .statuses, asOf: -0.5)
            restored.transactionID = "restored"
            var evidence = Answer(from: test.at(-40), asOf: test.at(-0.5)).evidence
            (evidence.transactions, evidence.confirmsOtherPurchases) = ([restored], true)
            let settled = try await test.check(
                receipt, .verified(evidence), server: ServerRead(beginsAtStart: false, revision: "r2", goesOn: false))
            #expect(settled.outcome == .verified)
            try await test.expectRows(Self.standing, [["r2", "verified", 2]])
        }
    }

    @Test("A first sight whose history goes on counts, and is read on a second later")
    func goesOn() async throws {
        try await withLedger { test in
            let receipt = try await receipt(test)
            let first = [row(test, 0, .signedText, asOf: -1)]
            _ = try await settle(
                test, receipt, history: first, statuses: 2, asOf: -1, revision: "r1", fromStart: true, goesOn: true)
            try await test.expectRows(Self.standing, [["r1", "verified", 2]])
            try await test.expectRows(
                "SELECT due_at <= now() + interval '2 s' FROM ledger.poll_schedule", [[true]])
            try await test.expectSound()
        }
    }

    @Test("What a history leaves out is as it was; what the statuses leave out was not said")
    func silence() async throws {
        try await withLedger { test in
            let receipt = try await read(test)
            _ = try await settle(test, receipt, history: [], statuses: 1, asOf: -0.5, revision: "r2")
            let clocks =
                "SELECT s.as_of = $1::timestamptz, p.as_of = $1::timestamptz FROM ledger.subscription s, ledger.purchase p"
            try await test.expectRows(clocks, with: [.instant(test.at(-0.5))], [[true, true]])
            _ = try await settle(test, receipt, history: [], statuses: nil, asOf: -0.4, revision: "r3")
            try await test.expectRows(clocks, with: [.instant(test.at(-0.4))], [[false, true]])
            try await test.expectSound()
        }
    }

    @Test("A history that takes a refund back is read again from the same place until that counts")
    func retraction() async throws {
        try await withLedger { test in
            let receipt = try await read(test)
            let refund = [row(test, 1, .signedText, asOf: -0.9, refunded: true)]
            _ = try await settle(test, receipt, history: refund, statuses: 1, asOf: -0.9, revision: "r2")
            try await test.expectRows("SELECT state FROM perennial.subscription_now", [["revoked"]])
            for (asked, state, revision) in [(-0.8, "revoked", "r2"), (-0.79, "active", "r3")] {
                let gone = [row(test, 1, .signedText, asOf: asked)]
                _ = try await settle(test, receipt, history: gone, statuses: 1, asOf: asked, revision: "r3")
                try await test.expectRows("SELECT state FROM perennial.subscription_now", [[.text(state)]])
                try await test.expectRows("SELECT history_revision FROM ledger.receipt", [[.text(revision)]])
            }
            try await test.expectSound()
        }
    }

    @Test("The poller is asked for a second answer, but not every minute about what its answers leave out")
    func silentPoller() async throws {
        try await withLedger { test in
            let receipt = try await read(test)
            let refund = [row(test, 0, .signedText, asOf: -0.9, refunded: true)]
            _ = try await settle(test, receipt, history: refund, statuses: 1, asOf: -0.9, revision: "r2")
            let other = try await test.upload("b")
            let lagging = Answer(from: test.at(-40), periods: 2, asOf: test.at(-0.8)).but { $0.createdAt = nil }
            try await test.database.transaction {
                _ = try $0.script("UPDATE ledger.receipt SET receipt_created_at = now() WHERE receipt_id = \(receipt)")
            }
            try await test.check(other, lagging)
            let doubted = "SELECT suspected IS NOT NULL, polled_by FROM ledger.subscription"
            try await test.expectRows(doubted, [[true, .receipt(receipt)]])
            let wait = Self.wait + " WHERE receipt_id = \(receipt)"
            try await test.expectRows(wait, [[60]])
            _ = try await settle(test, receipt, history: [], statuses: 1, asOf: -0.7, revision: "r3")
            try await test.expectRows(doubted, [[true, .receipt(receipt)]])
            try await test.expectRows(wait.replacing("::int", with: " > 3600"), [[true]])
            try await test.check(other, lagging.but { $0.asOf = test.at(-0.6) })
            try await test.expectRows(doubted, [[false, .receipt(receipt)]])
            try await test.expectSound()
        }
    }

    @Test("A second uploader's claim is decided over what the ledger links, though the answer repeats nothing of it")
    func claims() async throws {
        try await withLedger { test in
            let receipt = try await read(test, by: "anon")
            #expect(try await self.receipt(test, by: "alice") == receipt)
            let events = "SELECT count(*) FROM ledger.event WHERE kind = 'ownership.transferred'"
            _ = try await settle(test, receipt, history: [], statuses: nil, asOf: -0.5, revision: "r2")
            try await test.expectRows(
                """
                SELECT (SELECT customer FROM perennial.subscription_now), (SELECT customer FROM perennial.purchase_now)
                """, [["alice", "alice"]])
            #expect(try await test.text(events) == "2")
            try await test.expectSound()
            #expect(try await test.violations() == [])
        }
    }

    @Test("An order for which the receipt is sent is paid by a purchase that is stored already")
    func order() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let receipt = try await read(test, by: "anon")
            let order = try await test.place(by: "ann")
            let upload = Upload(
                appID: test.app.id, customer: nil, receipt: Array("1000".utf8), imported: false,
                order: OrderReference(id: order.id, isProved: true), form: .signedTransaction, transactionID: "1000")
            _ = try await test.ledger.intake.store([upload], newReceiptsMax: 10)
            _ = try await settle(test, receipt, history: [], statuses: 1, asOf: -0.5, revision: "r2")
            #expect(try await test.log(of: order) == "created placed, paid proof")
            #expect(try await test.owners() == "77 ann")
            #expect(try await test.violations() == [])
        }
    }

    @Test("An equal answer moves the place where the history is read on")
    func place() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-20), asOf: test.at(-9))
            func settlement(asOf: Double, _ revision: String) async throws -> Settlement {
                let body = Array("\(asOf)".utf8)
                return Settlement(
                    claim: try await test.claim(receipt),
                    finding: .verified(answer.but { $0.asOf = test.at(asOf) }.evidence), body: body,
                    latestReceipt: nil,
                    fingerprint: Fingerprint(
                        of: body, lasting: [0..<body.count], app: test.app, environment: .production),
                    server: ServerRead(beginsAtStart: true, revision: revision, goesOn: false)
                )
            }
            let settlements = test.ledger.settlements
            _ = try await settlements.settle([settlement(asOf: -9, "r1")])
            #expect(try await settlements.settle([settlement(asOf: -7, "r2")]).confirmed == [receipt])
            #expect(try await test.text("SELECT history_revision FROM ledger.receipt") == "r2")
        }
    }

    @Test(
        "An answer without a date that disagrees with what was dated during its call is set aside, and asked again soon"
    )
    func undated() async throws {
        try await withLedger { test in
            let (dated, legacy) = (try await test.upload("a"), try await test.upload("b"))
            let answer = Answer(from: test.at(-20), asOf: test.at(-9))
            try await test.check(dated, answer)
            try await test.check(legacy, answer.but { $0.asOf = test.at(-8.9) })
            try await test.check(dated, answer.but { ($0.asOf, $0.willRenew) = (test.at(-0.35), false) })
            func undated(claimed: Double, arrived: Double, _ willRenew: Bool) async throws -> Settled {
                var evidence = answer.but { ($0.asOf, $0.willRenew) = (test.at(claimed), willRenew) }.evidence
                evidence.arrivedAt = test.at(arrived)
                return try await test.check(legacy, .verified(evidence))
            }
            #expect(
                try await undated(claimed: -0.25, arrived: -0.2, false).outcome == .verified, "nothing came meanwhile")
            try await test.check(dated, answer.but { ($0.asOf, $0.willRenew) = (test.at(-0.1), false) })
            #expect(try await undated(claimed: -0.15, arrived: -0.05, false).outcome == .verified, "they agree")
            #expect(try await undated(claimed: -0.15, arrived: -0.05, true).outcome == .indeterminate)
            try await test.expectRows(
                """
                SELECT s.due_at <= now() + interval '60 s' FROM ledger.poll_schedule s
                JOIN ledger.receipt r USING (receipt_id) WHERE r.outcome = 'indeterminate'
                """, [[true]])
            #expect(try await undated(claimed: -0.04, arrived: -0.03, true).outcome == .verified)
            #expect(try await test.text("SELECT will_renew FROM perennial.subscription_now") == "true")
            try await test.expectSound()
        }
    }
}
