import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// Imports that come while others are being asked about: their place in the line may be before the mark of their lane.
@Suite("Imports are checked soon, beside all other receipts") struct ImportLaneTests {
    private let start = ContinuousClock.now

    /// Stores imported receipts that run out so many days from now.
    private func store(_ days: [Int64], in served: ServedLedger) async throws {
        let (app, now) = (try await served.ledger.apps.app(ServedLedger.app), try await served.ledger.now())
        let uploads = days.map { day in
            Upload(
                appID: app.id, customer: "c\(day)", receipt: Array("receipt \(day)".utf8), imported: true,
                expiresAt: now + .days(day))
        }
        _ = try await served.ledger.intake.store(uploads)
    }

    private func claim(
        _ tracker: Tracker, _ worker: WorkerID, _ turns: inout ClaimTurns, at seconds: Double
    ) async throws -> [String] {
        let claims = try await tracker.claimDue(
            as: worker, receiptsMax: 100, &turns, now: { start + .seconds(seconds) })
        return claims.claims.map { String(decoding: $0.receipt, as: UTF8.self) }
    }

    @Test("An import below the mark is asked about within seconds")
    func anImportBelowTheMarkIsAskedAboutWithinSeconds() async throws {
        try await ServedLedger.with { served in
            let tracker = Tracker.quiet(served.ledger)
            let worker = try await served.ledger.claims.startWorker(host: "test", process: 1)
            var turns = ClaimTurns()
            try await store([90], in: served)
            #expect(try await claim(tracker, worker, &turns, at: 0) == ["receipt 90"])
            try await store([10, 300], in: served)
            #expect(try await claim(tracker, worker, &turns, at: 0.1) == ["receipt 300"])
            #expect(try await claim(tracker, worker, &turns, at: 5) == ["receipt 10"])
        }
    }

    @Test("An import after an outage is asked about at once")
    func anImportAfterAnOutageIsAskedAboutAtOnce() async throws {
        try await ServedLedger.with { served in
            let worker = try await served.ledger.claims.startWorker(host: "test", process: 1)
            let database = Database(
                DatabaseConfiguration(connectionString: "host=127.0.0.1 port=1", connectTimeoutSeconds: 1)
            ) { _ in }
            let (here, away) = (
                Tracker.quiet(served.ledger), Tracker.quiet(SubscriptionLedger(database: database))
            )
            var turns = ClaimTurns()
            try await store([90], in: served)
            #expect(try await claim(here, worker, &turns, at: 0) == ["receipt 90"])
            var moments = [5.0, 15.0]
            await #expect(throws: DatabaseError.self) {
                _ = try await away.claimDue(
                    as: worker, receiptsMax: 100, &turns, now: { start + .seconds(moments.removeFirst()) })
            }
            await database.close()
            try await store([10], in: served)
            #expect(try await claim(here, worker, &turns, at: 15.1) == ["receipt 10"])
        }
    }
}
