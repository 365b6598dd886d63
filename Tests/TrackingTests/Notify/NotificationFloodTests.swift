import Crypto
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A flood of genuine notifications starves neither checks at an end nor new receipts")
struct NotificationFloodTests {
    /// A verified notification about a subscription.
    private func notification(_ id: String, of subscription: String, in test: TestLedger) -> VerifiedNotification {
        VerifiedNotification(
            kind: "REFUND", subkind: nil, appleID: id, environment: .production,
            originalTransactionID: OriginalTransactionID(subscription), transactionID: TransactionID(subscription),
            accountToken: nil, signedAt: test.at(0), texts: [], holdsFacts: true)
    }

    /// A notification of version 1 about a subscription.
    private func versionOne(of subscription: String) -> UnverifiedNotification {
        UnverifiedNotification(
            version: .one, kind: "CANCEL", environment: .production,
            originalTransactionID: OriginalTransactionID(subscription), body: "{}")
    }

    private func answer(about number: Int, in test: TestLedger, asOf day: Double = -1) -> Finding {
        Answer(from: test.at(-9), asOf: test.at(day)).but {
            ($0.subscription, $0.line) = (OriginalTransactionID("s\(number)"), "line \(number)")
        }.finding
    }

    /// Stores receipts that poll one subscription each: `s0`, `s1` and so on.
    private func polled(_ count: Int, in test: TestLedger) async throws -> [ReceiptID] {
        let stored = try await store(count, named: "r", in: test)
        var settlements: [Settlement] = []
        for (number, receipt) in stored.enumerated() {
            settlements.append(test.settlement(try await test.claim(receipt), answer(about: number, in: test)))
        }
        #expect(try await test.ledger.settlements.settleInFull(settlements).failures.map(\.reason) == [])
        try await test.run("UPDATE ledger.receipt SET asked_at = now() - interval '1 hour'")
        return stored
    }

    private func store(
        _ count: Int, named name: String, imported: Bool = false, in test: TestLedger
    ) async throws -> [ReceiptID] {
        let uploads = (0..<count).map { number in
            Upload(
                appID: test.app.id, customer: "\(name)\(number)", receipt: Array("\(name)\(number)".utf8),
                imported: imported)
        }
        return try await test.ledger.intake.store(uploads).map(\.receiptID)
    }

    /// Plans checks for a time from now, in a lane.
    private func plan(
        _ receipts: some Sequence<ReceiptID>, _ lane: Lane, in time: String, _ test: TestLedger
    ) async throws {
        try await test.run(
            """
            UPDATE ledger.poll_schedule SET lane = '\(lane)', due_at = now() + interval '\(time)',
                scheduled_for = now() + interval '\(time)'
            WHERE receipt_id IN (\(receipts.map(\.description).joined(separator: ", ")))
            """)
    }

    /// The app where notifications arrive, once it has a server key.
    private func notified(in test: TestLedger) async throws -> NotifiedApp {
        let key = P256.Signing.PrivateKey().pemRepresentation
        try await test.ledger.apps.storeServerKey(try ConnectKey(pem: key, id: "K", issuer: "I"), of: test.app.bundleID)
        let token = try await test.ledger.apps.openNotifications(of: test.app.bundleID)
        return try #require(try await test.ledger.apps.notifiedApp(at: token))
    }

    @Test("What is at an end, uploaded or imported is claimed within two batches, and the flood is asked about too")
    func flood() async throws {
        try await withLedger { test in
            let app = try await notified(in: test)
            let stored = try await polled(45, in: test)
            let ending = stored.prefix(5)
            try await plan(ending, .expiring, in: "-1 s", test)
            // The planned check of many subscriptions is the one before their end, days from now.
            try await plan(stored[15..<25], .expiring, in: "4 days", test)
            var underWay: [Claim] = []
            for receipt in stored[25..<35] { underWay.append(try await test.claim(receipt)) }
            for number in 5..<40 {
                for again in 1...3 {
                    let effect = try await test.ledger.intake.keep(
                        notification("\(number) \(again)", of: "s\(number)", in: test), for: app)
                    #expect(effect == .asked)
                }
            }
            for number in 40..<45 {
                #expect(try await test.ledger.intake.keep(versionOne(of: "s\(number)"), for: app) == .pulled)
            }
            for number in 45..<55 {
                for again in 1...2 {
                    let effect = try await test.ledger.intake.keep(
                        notification("\(number) \(again)", of: "unknown \(number)", in: test), for: app)
                    #expect(effect == .asked)
                }
            }
            for (offset, claim) in underWay.enumerated() {
                try await test.settle(claim, answer(about: 25 + offset, in: test, asOf: -0.5))
            }
            #expect(
                try await test.text("SELECT count(*) FROM ledger.poll_schedule WHERE lane = 'retry'") == "50",
                "several notifications of one subscription are one check, and all of the flood wait in one lane")
            // The flood came first.
            try await test.run(
                """
                UPDATE ledger.poll_schedule SET due_at = now() - interval '1 hour', scheduled_for = now() - interval '1 hour'
                WHERE receipt_id NOT IN (\(ending.map(\.description).joined(separator: ", ")))
                """)
            let uploaded = try await store(6, named: "upload", in: test)
            let imported = try await store(2, named: "import", imported: true, in: test)
            try await plan(uploaded, .new, in: "-1 s", test)
            let (claimed, batches) = try await claims(in: test)
            #expect(batches == [10, 10])
            #expect(claimed.isSuperset(of: ending), "checks at an end")
            #expect(claimed.isSuperset(of: uploaded), "uploads")
            #expect(claimed.isSuperset(of: imported), "imports")
            #expect(claimed.count == 20, "and seven of the flood")
        }
    }

    /// Claims what is due with a budget of ten calls, twice. Returns the receipts, and how many each batch had.
    private func claims(in test: TestLedger) async throws -> (receipts: Set<ReceiptID>, batches: [Int]) {
        let worker = try await test.ledger.claims.startWorker(host: "test", process: 1)
        var change = AppChange()
        (change.callsPerSecond, change.burst) = (50, 10)
        try await test.ledger.apps.change(test.app.bundleID, change)
        var turns = ClaimTurns()
        var claimed: [ReceiptID] = []
        var batches: [Int] = []
        for _ in 1...2 {
            try await test.run("UPDATE ledger.app_budget SET tokens = 10, refilled_at = now()")
            let claims = try await Tracker.quiet(test.ledger).claimDue(as: worker, receiptsMax: 300, &turns).claims
            batches.append(claims.count)
            claimed += claims.map(\.receiptID)
        }
        return (Set(claimed), batches)
    }

    @Test("A check at an end that is at hand keeps its lane when a notification brings it forward")
    func atHand() async throws {
        try await withLedger { test in
            let app = try await notified(in: test)
            let stored = try await polled(3, in: test)
            for (receipt, hours) in zip(stored, [1, 12, 14]) {
                try await plan([receipt], .expiring, in: "\(hours) hours", test)
            }
            for number in 0..<3 {
                _ = try await test.ledger.intake.keep(notification("\(number)", of: "s\(number)", in: test), for: app)
            }
            try await test.expectRows(
                """
                SELECT p.lane, p.due_at < now() + interval '6 s' AS soon
                FROM ledger.poll_schedule p JOIN ledger.subscription s ON s.polled_by = p.receipt_id
                ORDER BY s.original_transaction_id
                """,
                [["expiring", true], ["expiring", true], ["retry", true]])
        }
    }
}
