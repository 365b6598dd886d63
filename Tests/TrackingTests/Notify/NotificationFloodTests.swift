import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A flood of genuine notifications does not starve checks at an end")
struct NotificationFloodTests {
    /// A verified notification about a subscription.
    private func notification(_ id: String, of subscription: String, in test: TestLedger) -> VerifiedNotification {
        VerifiedNotification(
            kind: "REFUND", subkind: nil, appleID: id, environment: .production,
            originalTransactionID: OriginalTransactionID(subscription), transactionID: TransactionID(subscription),
            accountToken: nil, signedAt: test.at(0), texts: [], holdsFacts: true)
    }

    /// Stores receipts that poll one subscription each: `s0`, `s1` and so on.
    private func polled(_ count: Int, in test: TestLedger) async throws -> [ReceiptID] {
        let uploads = (0..<count).map { number in
            Upload(appID: test.app.id, customer: "c\(number)", receipt: Array("r\(number)".utf8), imported: false)
        }
        let stored = try await test.ledger.intake.store(uploads).map(\.receiptID)
        var settlements: [Settlement] = []
        for (number, receipt) in stored.enumerated() {
            let answer = Answer(from: test.at(-9), asOf: test.at(-1)).but {
                ($0.subscription, $0.line) = (OriginalTransactionID("s\(number)"), "line \(number)")
            }
            settlements.append(test.settlement(try await test.claim(receipt), answer.finding))
        }
        #expect(try await test.ledger.settlements.settleInFull(settlements).failures.map(\.reason) == [])
        return stored
    }

    @Test("They are claimed within two batches, however much Apple notified, and the flood is asked about too")
    func flood() async throws {
        try await withLedger { test in
            let token = try await test.ledger.apps.openNotifications(of: test.app.bundleID)
            let app = try #require(try await test.ledger.apps.notifiedApp(at: token))
            let stored = try await polled(45, in: test)
            let ending = stored.prefix(5)
            try await test.run(
                """
                UPDATE ledger.receipt SET asked_at = now() - interval '1 hour';
                UPDATE ledger.poll_schedule SET lane = 'expiring', due_at = now() - interval '1 second',
                    scheduled_for = now() - interval '1 second' WHERE receipt_id IN (\(ending.map(\.description).joined(separator: ", ")))
                """)
            for number in 5..<45 {
                for again in 1...3 {
                    let effect = try await test.ledger.intake.keep(
                        notification("\(number) \(again)", of: "s\(number)", in: test), for: app)
                    #expect(effect == .asked)
                }
            }
            // The flood came first.
            try await test.run(
                """
                UPDATE ledger.poll_schedule SET due_at = now() - interval '1 hour', scheduled_for = now() - interval '1 hour'
                WHERE lane = 'retry'
                """)
            #expect(
                try await test.text("SELECT count(*) FROM ledger.poll_schedule WHERE lane = 'retry'") == "40",
                "three notifications of one subscription are one check")
            let tracker = Tracker.quiet(test.ledger)
            let worker = try await test.ledger.claims.startWorker(host: "test", process: 1)
            var turns = ClaimTurns()
            var claimed: Set<ReceiptID> = []
            for batch in 1...2 {
                let claims = try await tracker.claimDue(as: worker, receiptsMax: 10, &turns).claims
                #expect(claims.count == 10, "batch \(batch)")
                claimed.formUnion(claims.map(\.receiptID))
            }
            #expect(claimed.isSuperset(of: ending), "checks at an end")
            #expect(claimed.count == 20, "and fifteen of the flood")
        }
    }
}
