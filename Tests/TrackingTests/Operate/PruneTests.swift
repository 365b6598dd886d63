import Postgres
import Subscriptions
import Testing

@testable import Tracking

/// What nothing rests on goes; what is rebuilt afterwards is the same.
@Suite("A prune removes only answers that nothing rests on")
struct PruneTests {
    /// Prunes everything recorded so far, one receipt a batch.
    private func prune(_ test: TestLedger, _ library: AnswerLibrary) async throws -> PruneBatch {
        let cutoff = try await test.ledger.now() + .seconds(1)
        var sum = PruneBatch()
        var after: Int64? = 0
        while let receipt = after {
            let batch = try await test.ledger.operations.prune(
                after: receipt, before: cutoff, limit: 1, reading: library.reading)
            sum.add(batch)
            after = batch.next
        }
        return sum
    }

    private func verify(_ test: TestLedger, _ library: AnswerLibrary) async throws -> RebuildBatch {
        var sum = RebuildBatch()
        var place: RebuildPlace? = .start
        while let here = place {
            let batch = try await test.ledger.operations.rebuild(
                from: here, RebuildScope(), correcting: false, reading: library.reading)
            sum.examined += batch.examined
            sum.differences += batch.differences
            sum.gaps += batch.gaps
            place = batch.next
        }
        return sum
    }

    @Test("A ledger in which much has happened is rebuilt the same from what is left, and a second prune finds nothing")
    func faithful() async throws {
        try await RebuildTests().withHistory { test, library in
            let kept = try await test.text("SELECT count(*) FROM ledger.observation")
            let first = try await prune(test, library)
            #expect(first.dropped > 0 && first.untouched == 0)
            #expect(try await test.text("SELECT sum(answers) FROM ledger.pruned_receipt") == "\(first.dropped)")
            let left = try await test.text("SELECT count(*) FROM ledger.observation")
            #expect(Int(kept) == Int(left).map { $0 + first.dropped })
            let verified = try await verify(test, library)
            #expect(verified.differences == [] && verified.gaps.map(\.reason) == [] && verified.examined > 3)
            #expect(try await prune(test, library).dropped == 0)
            // Without the note of what went, a rebuild could not know that nothing is missing.
            try await test.run("DELETE FROM ledger.pruned_receipt")
            #expect(try await verify(test, library).gaps.count > 0)
        }
    }

    @Test("An answer that alone knows how a period ended is kept, one that says what a newer one says is not")
    func needed() async throws {
        try await withLedger { test in
            let library = AnswerLibrary()
            let receipt = try await test.upload("a")
            let month = Answer(from: test.at(-100), asOf: test.at(-95))
            // The third tells how the first period ended; later answers do not mention that period.
            let story = [(-95.0, 1, false), (-90, 1, false), (-68, 1, true), (-50, 2, false), (-45, 2, false)]
            for (asOf, periods, inRetry) in story {
                let said = month.but { ($0.asOf, $0.periods, $0.inRetry) = (test.at(asOf), periods, inRetry) }
                try await RebuildTests().tell(test, library, receipt, .verified(said.evidence))
            }
            let sum = try await prune(test, library)
            #expect(sum.dropped == 1 && sum.needed == 1, "\(sum)")
            let verified = try await verify(test, library)
            #expect(verified.differences == [] && verified.gaps.map(\.reason) == [])
        }
    }

    @Test("Answers that only confirm a purchase confirm it also where the one that showed it first is gone")
    func confirming() async throws {
        try await withLedger { test in
            let library = AnswerLibrary()
            let month = Answer(from: test.at(-20), asOf: test.at(-15)).evidence
            guard case .verified(let coins) = purchase("77", at: test.at(-16), asOf: test.at(-8)) else {
                throw LedgerError(.mismatch, "no purchase")
            }
            let (poller, other) = (try await test.upload("a"), try await test.upload("b"))
            var both = month
            both.transactions += coins.transactions
            try await RebuildTests().tell(test, library, poller, .verified(both))
            var unchanged = Answer(from: test.at(-20), asOf: test.at(-10)).evidence
            unchanged.confirmsOtherPurchases = true
            let (noNews, body) = (
                ServerRead(beginsAtStart: false, revision: "r", goesOn: false), library.keep(unchanged)
            )
            try await RebuildTests().tell(
                test, library, poller, .verified(unchanged), server: noNews, repeated: body)
            try await RebuildTests().tell(test, library, other, .verified(coins))
            unchanged = Answer(from: test.at(-20), asOf: test.at(-5)).evidence
            unchanged.confirmsOtherPurchases = true
            try await RebuildTests().tell(
                test, library, poller, .verified(unchanged), server: noNews, repeated: body)
            #expect(try await test.text("SELECT count(*) FROM ledger.observation") == "3")
            #expect(try await prune(test, library).dropped == 1)
            let verified = try await verify(test, library)
            #expect(verified.differences == [] && verified.gaps.map(\.reason) == [])
        }
    }

    @Test("What cannot be rebuilt in full is left as it is")
    func untouched() async throws {
        try await RebuildTests().withHistory { test, library in
            try await test.run("UPDATE ledger.observation SET body = NULL")
            let sum = try await prune(test, library)
            #expect(sum.dropped == 0 && sum.untouched > 0, "\(sum)")
        }
    }

    @Test("Of two prunes at once each counts only what it removed")
    func atOnce() async throws {
        try await RebuildTests().withHistory { test, library in
            let kept = Int(try await test.text("SELECT count(*) FROM ledger.observation")) ?? 0
            let cutoff = try await test.ledger.now() + .seconds(1)
            let apps = try await test.ledger.operations.appsByID()
            let (first, waiting) = try await test.database.transaction { transaction in
                let first = try PruneRun(apps: apps, cutoff: cutoff, read: library.reading)
                    .receipts(after: 0, limit: 20, in: transaction)
                let second = Task { try await prune(test, library) }
                try transaction.waitUntilAnotherIsBlocked()
                return (first, second)
            }
            let dropped = first.dropped + (try await waiting.value.dropped)
            #expect(first.dropped > 0)
            #expect(try await test.text("SELECT count(*) FROM ledger.observation") == "\(kept - dropped)")
            #expect(try await test.text("SELECT sum(answers) FROM ledger.pruned_receipt") == "\(dropped)")
        }
    }

    @Test("Months without a row left give their disk space back, others do not")
    func months() async throws {
        try await withNewLedger { test in
            try await test.run(
                "SELECT count(ledger.add_observation_month(d)) FROM unnest('{2024-02-10,2024-03-10,2024-04-10}'::date[]) d"
            )
            try await test.run(
                """
                INSERT INTO ledger.observation
                    (receipt_id, app_id, lease_token, outcome, first_as_of, last_as_of, meaning, recorded_at)
                SELECT 1, app_id, 1, 'none', '2024-03-11', '2024-03-11', '', '2024-03-11' FROM ledger.app
                """)
            let cutoff = try #require(Instant(iso8601: "2025-01-01T00:00:00Z"))
            // A drop that waited for the reader would make all writers wait behind it.
            try await test.holdingSnapshot(of: "ledger.observation") {
                let dropped = try await test.ledger.operations.dropEmptyMonths(before: cutoff)
                #expect(dropped == 0)
            }
            #expect(try await test.ledger.operations.dropEmptyMonths(before: cutoff) == 2)
            let left = try await test.text(
                "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relname ~ '^observation_2024_..$'"
            )
            #expect(left == "observation_2024_03")
            #expect(try await test.ledger.operations.dropEmptyMonths(before: cutoff) == 0)
        }
    }

    @Test("The audit is cut at the given instant, and support calls with it")
    func audit() async throws {
        try await withLedger { test in
            let ledger = test.ledger.acting(as: .user("operator"))
            try await ledger.audit(.rebuilt)
            try await ledger.audit(.rebuilt)
            try await test.run(
                """
                UPDATE ledger.audit SET happened_at = now() - interval '5 years'
                WHERE audit_id = (SELECT min(audit_id) FROM ledger.audit);
                INSERT INTO ledger.support_call (app_id, environment, kind, subject, asked_at)
                SELECT app_id, 'Production', 'extend', '1', now() - make_interval(years => age) FROM ledger.app,
                    (VALUES (0), (5), (6)) old (age)
                """)
            #expect(try await ledger.operations.pruneAudit(before: test.at(-365)) == 3)
            #expect(try await test.text("SELECT count(*) FROM ledger.support_call") == "1")
            #expect(try await test.text("SELECT count(*) FROM ledger.audit") == "1")
        }
    }
}
