import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A worker verifies the invariants in its turn")
struct RunVerificationTests {
    @Test("Coverage that is lost is restored, counted, logged, audited and shown")
    func coverage() async throws {
        try await ServedLedger.with { served in
            let ledger = served.ledger
            let app = try await ledger.apps.app(ServedLedger.app)
            let upload = Upload(appID: app.id, customer: "ann", receipt: Array("receipt".utf8), imported: true)
            let receipt = try #require(try await ledger.intake.store([upload]).first).receiptID
            let journal = Journal()
            let tracker = Tracker(
                ledger: ledger, appStore: .answering(Sample.verified()), options: TrackerOptions(),
                logger: journal.logger)
            #expect(try await Worker(tracker).runOnce(maxSeconds: nil).asked == 1)
            let worker = try await tracker.startWorker()
            func scheduled() async throws -> Int64 {
                try await ledger.operations.status().lanes.reduce(0) { $0 + $1.receipts }
            }
            #expect(try await scheduled() == 1)
            try await served.run("DELETE FROM ledger.poll_schedule")

            try await tracker.verify(.coverage, as: worker)
            #expect(try await scheduled() == 1)
            let standing = try #require(try await ledger.operations.invariantStandings().first)
            #expect(standing.name == "coverage" && standing.violations == 1 && standing.repaired == 1)
            let lines = journal.lines.filter { $0.hasPrefix("error") }
            #expect(lines.count == 1 && lines[0].contains("its polling receipt is not scheduled"), "\(lines)")
            #expect(try await ledger.gauge(.violations, ("check", "coverage")) == 1)
            let audit = Statement(
                name: "audit",
                sql:
                    "SELECT receipt_id, detail ->> 'worker' AS worker FROM ledger.audit WHERE action = 'coverage.repaired'"
            )
            let audited = try await served.database.query(audit)
            #expect(try audited.map { try $0.int8("receipt_id") } == [receipt.number])
            #expect(try audited.map { try $0.text("worker") } == ["\(worker.number)"])

            try await served.run("DELETE FROM ledger.poll_schedule")
            try await tracker.verify(.coverage, as: worker)
            #expect(try await scheduled() == 0, "it was not time again")
            try await tracker.verify(.everything, as: worker)
            #expect(try await scheduled() == 1)
            #expect(try await ledger.operations.invariantStandings().count == Invariant.allCases.count)
        }
    }

    @Test("A running worker verifies the ledger by itself", .timeLimit(.minutes(1)))
    func byItself() async throws {
        try await ServedLedger.with { served in
            var options = TrackerOptions()
            options.verifyRestSeconds = 0.05
            let tracker = Tracker(
                ledger: served.ledger, appStore: .answering(nil), options: options, logger: Journal().logger)
            let worker = Task { try await Worker(tracker).run() }
            while try await served.ledger.operations.invariantStandings().count < Invariant.allCases.count {
                try await Task.sleep(for: .milliseconds(20))
            }
            worker.cancel()
            _ = await worker.result
        }
    }
}
