import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Tracking

@Suite("The loop rests no longer than its calls allow")
struct ClaimBackoffTests {
    /// The rest after a round of claiming that found receipts due and the budget used up.
    private func restSeconds(rate: Double, burst: Double, slowedTo: Double? = nil) async throws -> Double {
        let rest = Mutex(0.0)
        try await ServedLedger.with { served in
            var change = AppChange()
            (change.callsPerSecond, change.burst) = (rate, burst)
            try await served.ledger.apps.change(ServedLedger.app, change)
            let app = try await served.ledger.apps.app(ServedLedger.app)
            _ = try await served.ledger.intake.store(
                [Upload(appID: app.id, customer: "ann", receipt: Array("receipt".utf8), imported: true)])
            try await served.run("UPDATE ledger.app_budget SET tokens = 0, refilled_at = now() + interval '1 day'")
            if let slowedTo {
                try await served.run(
                    "UPDATE ledger.app_budget SET slowed_to = \(slowedTo), slowed_at = now() + interval '1 day'")
            }
            let tracker = Tracker(
                ledger: served.ledger, appStore: .answering(nil), options: TrackerOptions(),
                logger: Journal().logger)
            let worker = try await served.ledger.claims.startWorker(host: "test", process: 1)
            var turns = ClaimTurns()
            let due = try await tracker.claimDue(as: worker, receiptsMax: 10, &turns)
            var backoff = ClaimBackoff()
            backoff.record(due)
            #expect(due.claims.isEmpty && backoff.isIdle)
            rest.withLock { $0 = backoff.restSeconds }
        }
        return rest.withLock { $0 }
    }

    @Test("The rest is no longer than a small burst lasts, so fifty calls a second stay fifty")
    func smallBurst() async throws {
        #expect(try await restSeconds(rate: 50, burst: 1) == 0.01)
    }

    @Test("An app that Apple slowed down is not looked at all the time")
    func slowed() async throws {
        #expect(try await restSeconds(rate: 50, burst: 1, slowedTo: 0.5) == 0.25)
        #expect(try await restSeconds(rate: 0, burst: 1, slowedTo: 20) == 0.25)
    }

    @Test("The rest is a quarter of a second at most")
    func usual() async throws {
        #expect(try await restSeconds(rate: 50, burst: 50) == 0.25)
        var backoff = ClaimBackoff()
        backoff.record(DueClaims())
        #expect(backoff.restSeconds == 0.25)
    }
}

@Suite("No more calls are under way than there are connections")
struct CallGateTests {
    private struct Count {
        var now = 0
        var most = 0
        var all = 0
    }

    private final class Counter: Sendable {
        let count = Mutex(Count())

        func begin() {
            count.withLock { count in
                count.now += 1
                count.all += 1
                count.most = max(count.most, count.now)
            }
        }

        func end() { count.withLock { $0.now -= 1 } }
    }

    @Test("Every caller gets a turn, and never more than the limit at a time", .timeLimit(.minutes(1)))
    func limit() async {
        let gate = CallGate(callsMax: 3)
        let counter = Counter()
        await withDiscardingTaskGroup { group in
            for _ in 0..<200 {
                group.addTask {
                    await gate.enter()
                    counter.begin()
                    await Task.yield()
                    counter.end()
                    gate.leave()
                }
            }
        }
        let seen = counter.count.withLock { $0 }
        #expect(seen.all == 200 && seen.now == 0)
        #expect(seen.most <= 3)
    }
}
