import Foundation
import Postgres
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import Tracking

@Suite("A worker stops gracefully while many calls are under way")
struct StopTests {
    /// More than one process may ask about at once, so that it waits for calls to end before it claims again.
    private static let receipts = Worker.claimsMax + 100

    /// Checks as a worker does, with so much patience; the store may answer as soon as the stop begins.
    private struct Checking: Service {
        let tracker: Tracker
        let patienceSeconds: Double
        let atStop: @Sendable () -> Void
        let rounds: Rounds

        func run() async throws {
            let worker = try await tracker.ledger.claims.startWorker(host: "test", process: 1)
            var loop = CheckLoop(tracker: tracker, worker: worker)
            loop.patienceSeconds = patienceSeconds
            let checking = loop
            await withGracefulShutdownHandler {
                await checking.run { _ in
                    rounds.add(isFull: await checking.isFull)
                    return isStopping()
                }
            } onGracefulShutdown: {
                atStop()
            }
        }
    }

    /// Whether each round of claims found the loop full.
    private final class Rounds: Sendable {
        private let rounds = Mutex<[Bool]>([])

        var all: [Bool] { rounds.withLock(\.self) }

        func add(isFull: Bool) {
            rounds.withLock { $0.append(isFull) }
        }
    }

    /// What a stop left: calls made, receipts that another worker can take at once, answers counted as failed.
    private struct Left {
        var calls = 0
        var due = 0
        var failed: Int64 = 0
        var full: [Bool] = []
    }

    /// Runs until `claimsMin` are held and as many calls as possible are under way, and some rounds longer, then stops
    /// gracefully. An app with a rate has tokens for all.
    /// The App Store answers nothing before the stop, or before a call is given up.
    private func stop(
        patienceSeconds: Double, answering: Bool, rate: Int = 0, claimsMin: Int = Worker.claimsMax
    ) async throws -> Left {
        let isOpen = Mutex(false)
        let open: @Sendable () -> Void = { isOpen.withLock { $0 = true } }
        let store = ScriptedStore { _ in
            // Being cancelled is the only way to fail, and that ends the loop.
            while !isOpen.withLock({ $0 }), !Task.isCancelled { try? await Task.sleep(for: .milliseconds(20)) }
            return .saying(isOpen.withLock({ $0 }) ? Sample.verified() : nil)
        }
        let left = Mutex(Left())
        let rounds = Rounds()
        try await ServedLedger.with { served in
            let app = try await served.ledger.apps.app(ServedLedger.app)
            _ = try await served.ledger.intake.store(
                (0..<Self.receipts).map {
                    Upload(appID: app.id, customer: "c\($0)", receipt: Array("receipt \($0)".utf8), imported: true)
                })
            try await served.run("UPDATE ledger.app_budget SET rate = \(rate), burst = 1000, tokens = 1000")
            let tracker = Tracker(
                ledger: served.ledger, appStore: store.client, options: TrackerOptions(), logger: Journal().logger)
            let checking = Checking(
                tracker: tracker, patienceSeconds: patienceSeconds, atStop: { if answering { open() } }, rounds: rounds)
            let group = ServiceGroup(services: [checking], logger: Journal().logger)
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await group.run() }
                while try await Self.held(served) < claimsMin || store.callCount < min(claimsMin, Worker.callsMax) {
                    try await Task.sleep(for: .milliseconds(20))
                }
                if rate > 0 { try await Task.sleep(for: .seconds(0.6)) }
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
            }
            let found = try await served.database.query(
                Statement(
                    name: "free",
                    sql: "SELECT count(*) AS free FROM ledger.poll_schedule WHERE leased_by IS NULL AND due_at <= now()"
                ))
            let due = Int(try found.first?.int8("free") ?? 0)
            let failed = Int64(tracker.tally.take()[app.id]?.failed ?? 0)
            left.withLock { $0 = Left(calls: store.callCount, due: due, failed: failed, full: rounds.all) }
        }
        return left.withLock { $0 }
    }

    /// The receipts that a worker has leased.
    private static func held(_ served: ServedLedger) async throws -> Int {
        let rows = try await served.database.query(
            Statement(
                name: "held", sql: "SELECT count(*) AS held FROM ledger.poll_schedule WHERE leased_by IS NOT NULL"))
        return Int(try rows.first?.int8("held") ?? 0)
    }

    @Test("Calls without an answer and what waits are handed back, and the process ends", .timeLimit(.minutes(1)))
    func givesUp() async throws {
        let left = try await stop(patienceSeconds: 0.2, answering: false)
        #expect(left.calls == Worker.callsMax, "no more than the connections")
        #expect(left.due == Self.receipts, "another worker can take all of them at once")
        #expect(left.failed == 0, "that they were given up is not Apple's fault")
        #expect(left.full.first == false && left.full.contains(true), "full once all claims are in use: \(left.full)")
    }

    /// With tokens for all of them, too: answers that come slowly are no reason to have ever more calls under way.
    @Test("No more calls are under way than the rate brings in five seconds", .timeLimit(.minutes(1)))
    func boundedByRateTimesLatency() async throws {
        let left = try await stop(patienceSeconds: 0.2, answering: false, rate: 20, claimsMin: 100)
        #expect(left.calls == 100)
        #expect(!left.full.contains(true), "an app that waits for its rate leaves room for others")
        #expect(left.due == Self.receipts)
    }

    @Test("Nothing new is claimed when the answers come after the stop", .timeLimit(.minutes(1)))
    func asksNothingNew() async throws {
        let left = try await stop(patienceSeconds: 30, answering: true)
        #expect(left.calls == Worker.claimsMax)
        #expect(left.due == Self.receipts - Worker.claimsMax)
    }
}
