import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Ledger

/// Each test has it to itself.
private let reused = OncePerSuite<ReusedDatabase>.database()

@Suite("Workers judge notifications by the refunds that they reported", .serialized, reused)
struct JudgeSweepTests {
    /// An app with `--sweep auto` for a hundred days, and receipts with a subscription each.
    private func arrange(_ test: TestLedger, receipts: Int, factor: Int) async throws -> [ReceiptID] {
        let made = try await test.canaries(receipts)
        var change = AppChange()
        change.sweep = .auto
        try await test.ledger.apps.change(test.app.bundleID, change)
        try await test.ledger.operations.judgeSweeps()
        try await test.run(
            """
            UPDATE ledger.sweep_trust SET factor = \(factor), since = now() - interval '100 days',
                   all_swept_since = CASE WHEN \(factor) = 1 THEN now() - interval '100 days' END,
                   counted_until = now() - interval '100 days'
            """)
        return made
    }

    /// Refunds every subscription some days ago; notifications of all but the first ones come after some hours.
    private func refund(_ test: TestLedger, daysAgo: Int, missed: Int = 0, hours: Int = 3) async throws {
        try await test.run(
            """
            INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id,
                                      occurred_at, as_of, recorded_at)
            SELECT gen_random_uuid(), app_id, environment, subscription_id, 1000 + \(daysAgo), 0, 'refund.granted', 'p',
                   refunded_at, refunded_at, refunded_at + interval '3 hours'
            FROM ledger.subscription CROSS JOIN (SELECT now() - \(daysAgo) * interval '1 day' AS refunded_at) r;
            INSERT INTO ledger.notification (app_id, received_at, version, kind, environment, original_transaction_id,
                                             signed_at, effect, apple_id)
            SELECT app_id, refunded_at + \(hours) * interval '1 hour', 2, 'REFUND', environment, original_transaction_id,
                   refunded_at, 'applied', gen_random_uuid()
            FROM ledger.subscription CROSS JOIN (SELECT now() - \(daysAgo) * interval '1 day' AS refunded_at) r
            ORDER BY subscription_id OFFSET \(missed);
            """)
    }

    private func judged(_ test: TestLedger) async throws -> [Int64] {
        try await test.ledger.operations.judgeSweeps()
        let standing = try #require(try await test.ledger.operations.sweepStandings().first)
        return [standing.reported, standing.missed]
    }

    @Test("Each refund counts once: a reported one after 14 days, a missed one at once, both for 90 days more")
    func counts() async throws {
        try await withLedger(in: reused) { test in
            _ = try await arrange(test, receipts: 6, factor: 1)
            try await refund(test, daysAgo: 20, missed: 1)
            #expect(try await judged(test) == [5, 1])
            #expect(try await judged(test) == [5, 1])
            try await test.run("UPDATE ledger.sweep_trust SET counted_until = now() - interval '19 days'")
            try await refund(test, daysAgo: 3, missed: 2)
            #expect(try await judged(test) == [5, 3])
            try await test.run("UPDATE ledger.sweep_proof SET began_at = began_at - interval '13 days'")
            #expect(try await judged(test) == [9, 3])
            try await test.run("UPDATE ledger.sweep_proof SET began_at = began_at - interval '75 days'")
            #expect(try await judged(test) == [4, 2])
        }
    }

    @Test("A notification after more than a day reported nothing, and what came before `auto` does not count")
    func late() async throws {
        try await withLedger(in: reused) { test in
            _ = try await arrange(test, receipts: 3, factor: 1)
            try await refund(test, daysAgo: 20, hours: 25)
            #expect(try await judged(test) == [0, 3])
            try await test.run(
                "UPDATE ledger.sweep_trust SET since = now() - interval '9 days', counted_until = now() - interval '11 days'"
            )
            try await refund(test, daysAgo: 10, missed: 3)
            #expect(try await judged(test) == [0, 3])
        }
    }

    @Test("While sweeps are longer, only the control group counts")
    func control() async throws {
        try await withLedger(in: reused) { test in
            let receipts = try await arrange(test, receipts: 60, factor: 4)
            let control = receipts.count { SweepTrust.isControl(UInt64(bitPattern: $0.number)) }
            try await refund(test, daysAgo: 20)
            #expect(try await judged(test) == [Int64(control), 0])
            #expect(control < 12)
        }
    }

    @Test("When notifications stop, planned sweeps move forward once, and the setting ends the judging")
    func recall() async throws {
        try await withLedger(in: reused) { test in
            _ = try await arrange(test, receipts: 4, factor: 4)
            try await test.run(
                """
                UPDATE ledger.poll_schedule SET lane = 'sweep', due_at = now() + interval '20 days';
                UPDATE ledger.poll_schedule SET lane = 'expiring', due_at = now() + interval '20 days'
                WHERE receipt_id = (SELECT min(receipt_id) FROM ledger.poll_schedule);
                """)
            for _ in 0..<2 {
                _ = try await judged(test)
                try await test.expectRows(
                    """
                    SELECT p.lane::text, round(extract(epoch FROM p.due_at - now()) / 86400)::int, t.factor::int,
                           t.recalled_to IS NULL
                    FROM ledger.poll_schedule p CROSS JOIN ledger.sweep_trust t ORDER BY receipt_id
                    """,
                    [["expiring", 20, 1, true]] + Array(repeating: ["sweep", 5, 1, true], count: 3))
            }
            var change = AppChange()
            change.sweep = .normal
            try await test.ledger.apps.change(test.app.bundleID, change)
            try await test.ledger.operations.judgeSweeps()
            #expect(try await test.ledger.operations.sweepStandings().isEmpty)
        }
    }
}
