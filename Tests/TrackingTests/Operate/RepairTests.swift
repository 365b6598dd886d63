import Postgres
import Subscriptions
import Testing

@testable import Tracking

@Suite("A repair covers a subscription that no receipt polls")
struct RepairTests {
    private func answer(_ test: TestLedger, made: Double?, asOf: Double) -> Answer {
        Answer(from: test.at(-9), asOf: test.at(asOf)).but { $0.createdAt = made.map(test.at) }
    }

    /// Two receipts that hold the same subscription; the newer one polls it.
    private func withTwoReceipts(
        _ body: (TestLedger, _ old: ReceiptID, _ new: ReceiptID) async throws -> Void
    ) async throws {
        try await withLedger { test in
            let (old, new) = (try await test.upload("old"), try await test.upload("new"))
            try await test.check(old, answer(test, made: -8, asOf: -4))
            try await test.check(new, answer(test, made: -2, asOf: -3))
            #expect(try await test.violations() == [])
            try await body(test, old, new)
        }
    }

    /// Repairs what is found; what is left.
    @discardableResult
    private func repair(_ test: TestLedger) async throws -> [Violation] {
        let hands = test.ledger.acting(as: .user("kim"))
        for violation in try await test.violations() {
            #expect(try await hands.operations.repair(violation, test.verifyTerms) != nil, "\(violation)")
            #expect(try await hands.operations.remaining(of: [violation], test.verifyTerms) == [])
        }
        return try await test.violations()
    }

    private func polling(_ test: TestLedger) async throws -> [Cell] {
        try await test.row(
            """
            SELECT s.polled_by, p.lane, p.due_at <= s.next_check_at AS on_time, p.due_at <= now() AS due
            FROM ledger.subscription s LEFT JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
            """)
    }

    @Test("A poller that is scheduled too late is moved forward, one at rest is put back")
    func late() async throws {
        try await withTwoReceipts { test, _, new in
            for failure in [
                "UPDATE ledger.poll_schedule SET due_at = due_at + interval '9 days'",
                "DELETE FROM ledger.poll_schedule",
            ] {
                try await test.run(failure)
                #expect(try await repair(test) == [])
                #expect(try await polling(test) == [.receipt(new), "sweep", true, false], "\(failure)")
            }
            try await test.run("UPDATE ledger.subscription SET next_check_at = now() - interval '1 s'")
            #expect(try await repair(test) == [])
            #expect(try await polling(test) == [.receipt(new), "sweep", true, true])
            try await test.expectRows(
                """
                SELECT actor, action, bundle_id, receipt_id, detail ->> 'check' AS c
                FROM perennial.audit_log ORDER BY audit_id
                """,
                Array(
                    repeating: ["user kim", "coverage.repaired", "com.example.app", .receipt(new), "coverage"],
                    count: 3))
        }
    }

    @Test("Lost follow-ups are planned again, also of what had retired")
    func followUps() async throws {
        try await withTwoReceipts { test, _, new in
            try await test.run(
                """
                INSERT INTO ledger.notification (app_id, received_at, version, kind, environment,
                    original_transaction_id, signed_at, effect, texts)
                SELECT app_id, now(), 2, 'REFUND', environment, original_transaction_id, now(), 'asked', ''
                FROM ledger.subscription
                """)
            let planned =
                "SELECT receipt_id, follow_ups, due_at <= now() AS due FROM ledger.poll_schedule WHERE receipt_id = \(new)"
            #expect(try await repair(test) == [])
            try await test.expectRows(planned, [[.receipt(new), 4, true]])
            try await test.run(
                "DELETE FROM ledger.poll_schedule; UPDATE ledger.subscription SET next_check_at = NULL")
            let found = try await test.violations([.coverage])
            #expect(found.map(\.detail) == ["its polling receipt is not scheduled"])
            for violation in found { _ = try await test.ledger.operations.repair(violation, test.verifyTerms) }
            try await test.expectRows(planned, [[.receipt(new), 4, true]])
        }
    }

    @Test("A missing link of the poller is restored, and its next answer decides")
    func link() async throws {
        try await withTwoReceipts { test, _, new in
            try await test.run("DELETE FROM ledger.receipt_subscription WHERE receipt_id = \(new)")
            #expect(try await test.violations().map(\.detail) == ["its polling receipt does not hold it"])
            #expect(try await repair(test) == [])
            #expect(try await polling(test)[0] == .receipt(new))
        }
    }

    @Test("A poller that cannot vouch gives way to the newest verified receipt; an undated one comes last")
    func successor() async throws {
        try await withTwoReceipts { test, old, new in
            let undated = try await test.upload("undated")
            try await test.check(undated, answer(test, made: nil, asOf: -2.5))
            try await test.run(
                "UPDATE ledger.receipt SET rejections = 1, rejected_since = now() WHERE receipt_id = \(new)")
            #expect(try await repair(test) == [])
            #expect(try await polling(test) == [.receipt(old), "expiring", true, true])
            try await test.run("UPDATE ledger.receipt SET erased_at = now() WHERE receipt_id = \(old)")
            #expect(try await repair(test) == [])
            #expect(try await polling(test) == [.receipt(undated), "expiring", true, true])
            try await test.run("UPDATE ledger.receipt SET erased_at = now() WHERE receipt_id = \(undated)")
            #expect(try await repair(test) == [])
            #expect(try await polling(test) == [nil, nil, nil, nil], "nothing can vouch, so nothing is asked")
            #expect(try await test.text("SELECT next_check_at FROM ledger.subscription") == "-")
        }
    }

    @Test("What has no poller or no plan is asked about at once")
    func planless() async throws {
        try await withTwoReceipts { test, _, new in
            for failure in ["polled_by = NULL, next_check_at = NULL", "next_check_at = NULL"] {
                try await test.run("UPDATE ledger.subscription SET \(failure)")
                #expect(try await repair(test) == [])
                #expect(try await polling(test).prefix(2) == [.receipt(new), "expiring"], "\(failure)")
                #expect(try await polling(test)[3] == true, "\(failure)")
                try await test.check(new, answer(test, made: -2, asOf: -1))
            }
        }
    }

    @Test("A receipt that is being asked about keeps its lease and is wanted by then; one in quarantine keeps its pace")
    func leased() async throws {
        try await withTwoReceipts { test, old, new in
            try await test.run("UPDATE ledger.subscription SET polled_by = NULL, next_check_at = NULL")
            let claim = try await test.claim(new)
            try await test.run("UPDATE ledger.receipt SET erased_at = now() WHERE receipt_id = \(old)")
            #expect(try await repair(test) == [])
            let row = """
                SELECT leased_by IS NOT NULL AS leased, due_at > now() + interval '30 s' AS kept,
                       want_at <= now() AS wanted FROM ledger.poll_schedule WHERE receipt_id = \(new)
                """
            try await test.expectRows(row, [[true, true, true]])
            try await test.settle(claim, outage)
            #expect(try await polling(test).prefix(2) == [.receipt(new), "expiring"])
            #expect(try await polling(test)[3] == true)
            try await test.run(
                """
                UPDATE ledger.poll_schedule
                SET lane = 'quarantine', due_at = now() + interval '1 hour', scheduled_for = due_at, want_at = NULL;
                DELETE FROM ledger.poll_schedule WHERE receipt_id = \(old)
                """)
            #expect(try await repair(test) == [])
            try await test.expectRows(
                "SELECT lane, due_at > now() AS kept, want_at FROM ledger.poll_schedule", [["quarantine", true, nil]])
        }
    }

    @Test("Repairs beside settlements neither collide nor undo them")
    func atOnce() async throws {
        try await withNewLedger(connections: 8) { test in
            for round in 0..<10 {
                let (old, new) = (try await test.upload("old\(round)"), try await test.upload("new\(round)"))
                let id = OriginalTransactionID("s\(round)")
                try await test.check(old, answer(test, made: -8, asOf: -4).but { $0.subscription = id })
                try await test.check(new, answer(test, made: -2, asOf: -3).but { $0.subscription = id })
                try await test.run(
                    "UPDATE ledger.subscription SET polled_by = NULL, next_check_at = NULL WHERE original_transaction_id = '\(id)'"
                )
                let found = try await test.violations([.poller])
                #expect(found.map(\.originalTransactionID) == [id])
                let (claimOld, claimNew) = (try await test.claim(old), try await test.claim(new))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for violation in found + found {
                        group.addTask { _ = try await test.ledger.operations.repair(violation, test.verifyTerms) }
                    }
                    for (claim, made) in [(claimOld, -8.0), (claimNew, -2)] {
                        let finding = answer(test, made: made, asOf: -1).but { $0.subscription = id }.finding
                        group.addTask { try await test.settle(claim, finding) }
                    }
                    try await group.waitForAll()
                }
                #expect(try await repair(test) == [], "round \(round)")
            }
            #expect(
                try await test.text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == "0")
        }
    }

    @Test("What coverage has no part in is not repaired")
    func otherwise() async throws {
        try await withTwoReceipts { test, _, _ in
            try await test.run("UPDATE ledger.subscription SET periods = 7")
            let found = try await test.violations()
            #expect(found.map(\.invariant) == [.facts])
            for violation in found {
                #expect(try await test.ledger.operations.repair(violation, test.verifyTerms) == nil)
            }
        }
    }
}

@Suite("One worker at a time verifies the ledger")
struct VerifyTurnTests {
    @Test("A turn is one worker's until it ends, then no worker's until it is time; a worker that died loses it")
    func turns() async throws {
        try await withLedger { test in
            let ledger = test.ledger
            let other = try await ledger.claims.startWorker(host: "other", process: 2)
            #expect(try await ledger.operations.take(.coverage, for: test.worker))
            #expect(try await !ledger.operations.take(.coverage, for: other))
            #expect(try await ledger.operations.take(.everything, for: other))
            #expect(try await ledger.operations.move(.coverage, of: test.worker))
            #expect(try await !ledger.operations.move(.coverage, of: other))
            try await test.run(
                "UPDATE ledger.verify_turn SET moved_at = now() - interval '6 minutes' WHERE name = 'coverage'")
            #expect(try await ledger.operations.take(.coverage, for: other))
            #expect(try await !ledger.operations.move(.coverage, of: test.worker), "it was lost meanwhile")
            #expect(try await ledger.operations.move(.coverage, of: other, isOver: true))
            #expect(try await !ledger.operations.take(.coverage, for: test.worker), "it is not time")
            try await test.run(
                "UPDATE ledger.verify_turn SET begun_at = now() - interval '10 minutes' WHERE name = 'coverage'")
            #expect(try await ledger.operations.take(.coverage, for: test.worker))
            #expect(try await !ledger.operations.take(.everything, for: test.worker))
        }
    }

    @Test("The newest findings are listed by invariant")
    func standings() async throws {
        try await withLedger { test in
            #expect(try await test.ledger.operations.invariantStandings() == [])
            try await test.ledger.operations.writeInvariants([.feed: (0, 0), .coverage: (3, 2)])
            try await test.ledger.operations.writeInvariants([.feed: (1, 0)])
            let reported = try await test.ledger.operations.invariantStandings()
            #expect(reported.map(\.name) == ["coverage", "feed"])
            #expect(reported.map(\.violations) == [3, 1] && reported.map(\.left) == [1, 1])
        }
    }
}
