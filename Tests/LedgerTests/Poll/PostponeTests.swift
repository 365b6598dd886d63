import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Ledger

/// Each test has it to itself.
private let reused = OncePerSuite<ReusedDatabase>.database()

@Suite("A renewal that a trusted notification reports needs no check of its own", .serialized, reused)
struct PostponeTests {
    private static let subscription: OriginalTransactionID = "1000"

    /// A subscription whose period ends in two hours, checked just now; its poller is in the control group or not.
    private func arrange(
        _ test: TestLedger, sweep: SweepFrequency = .auto, factor: Int = 4, control: Bool = false
    ) async throws -> ReceiptID {
        var change = AppChange()
        change.sweep = sweep
        try await test.ledger.apps.change(test.app.bundleID, change)
        try await test.ledger.operations.judgeSweeps()
        try await test.run(
            "UPDATE ledger.sweep_trust SET factor = \(factor), all_swept_since = CASE WHEN \(factor) = 1 THEN now() END"
        )
        var number = 0
        var receipt = try await test.upload("0")
        while SweepTrust.isControl(UInt64(bitPattern: receipt.number)) != control {
            number += 1
            receipt = try await test.upload("\(number)")
        }
        try await test.check(receipt, Answer(from: test.at(-30 + 2.0 / 24), asOf: test.at(0)))
        return receipt
    }

    /// Applies a notification, signed a minute later, that holds the next period and the renewal information.
    private func hear(_ test: TestLedger, coverage: Coverage = .head) async throws {
        let token = try await test.ledger.apps.openNotifications(of: test.app.bundleID)
        let app = try #require(try await test.ledger.apps.notifiedApp(at: token))
        let signedAt = test.at(1.0 / 1440)
        var evidence = Answer(from: test.at(-30 + 2.0 / 24), asOf: signedAt).but { $0.periods = 2 }.evidence
        evidence.transactions.removeFirst()
        evidence.coverage = coverage
        let notification = VerifiedNotification(
            kind: "DID_RENEW", subkind: nil, appleID: "n", environment: .production,
            originalTransactionID: Self.subscription, transactionID: evidence.transactions[0].transactionID,
            signedAt: signedAt, texts: Array("texts".utf8), holdsFacts: true)
        _ = try await test.ledger.intake.keep(notification, for: app)
        let applied = try await test.ledger.settlements.applyNotifications(reading: { [evidence] _ in evidence })
        #expect(applied.notifications == 1)
    }

    /// The lane of the receipt's next check, and the hours until then.
    private func next(_ test: TestLedger, _ receipt: ReceiptID) async throws -> String {
        try await test.text(
            """
            SELECT lane || ' ' || round(extract(epoch FROM due_at - now()) / 3600)
            FROM ledger.poll_schedule WHERE receipt_id = \(receipt.number)
            """)
    }

    @Test("The check before the end moves on to the next sweep, which counts from the last answer about everything")
    func moves() async throws {
        try await withLedger(in: reused) { test in
            let receipt = try await arrange(test)
            #expect(try await next(test, receipt) == "expiring 1")
            try await hear(test)
            #expect(try await next(test, receipt) == "sweep 288")
            try await test.expectRows(
                "SELECT state::text, events.count::int FROM perennial.subscription_now, "
                    + "(SELECT count(*) FROM ledger.event WHERE kind = 'subscription.renewed') events", [["active", 1]])
            #expect(try await test.violations() == [])
        }
    }

    @Test("A sweep that is overdue comes at once")
    func overdue() async throws {
        try await withLedger(in: reused) { test in
            let receipt = try await arrange(test)
            try await test.run("UPDATE ledger.poll_schedule SET swept_at = now() - interval '13 days'")
            try await hear(test)
            #expect(try await next(test, receipt) == "sweep 0")
        }
    }

    @Test(
        """
        The check stays where notifications are not trusted, in the control group, where no sweep is known, and where the \
        notification shows only a part
        """,
        arguments: ["normal", "factor 1", "control", "unknown", "piece"])
    func stays(why: String) async throws {
        try await withLedger(in: reused) { test in
            let receipt = try await arrange(
                test, sweep: why == "normal" ? .normal : .auto, factor: why == "factor 1" ? 1 : 4,
                control: why == "control")
            if why == "unknown" { try await test.run("UPDATE ledger.poll_schedule SET swept_at = NULL") }
            try await hear(test, coverage: why == "piece" ? .piece : .head)
            #expect(try await next(test, receipt) == "expiring 1")
        }
    }

    @Test(
        "The check stays where it was moved, while a worker has it, and after failed calls",
        arguments: [
            "due_at = due_at - interval '1 minute'", "leased_by = (SELECT min(worker_id) FROM ledger.worker)",
            "attempts = 2",
        ])
    func keeps(change: String) async throws {
        try await withLedger(in: reused) { test in
            let receipt = try await arrange(test)
            try await test.run("UPDATE ledger.poll_schedule SET \(change)")
            try await hear(test)
            #expect(try await next(test, receipt) == "expiring 1")
        }
    }

    @Test("A second subscription of the same receipt keeps its check")
    func second() async throws {
        try await withLedger(in: reused) { test in
            let receipt = try await arrange(test)
            let asOf = test.at(0.0001)
            try await test.check(
                receipt,
                together([
                    Answer(from: test.at(-30 + 2.0 / 24), asOf: asOf),
                    Answer(from: test.at(-30 + 3.0 / 24), asOf: asOf).but { $0.subscription = "2000" },
                ]))
            try await hear(test)
            #expect(try await next(test, receipt) == "expiring 1")
        }
    }
}
