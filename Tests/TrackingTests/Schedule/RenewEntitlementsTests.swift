import Subscriptions
import TestSupport
import Testing
import Tracking

/// What a new catalog or an import outdates is stored again.
@Suite("Workers renew outdated entitlements")
struct RenewEntitlementsTests {
    private func withOutdated(
        _ body: @escaping @Sendable (Worker, _ outdated: @Sendable () async throws -> Bool) async throws -> Void
    ) async throws {
        try await ServedLedger.with { served in
            let decision = try ManualDecision(by: "kim", because: "a test")
            _ = try await served.ledger.customers.grant(
                "pro", to: "ann", of: ServedLedger.app, until: nil, deciding: decision)
            try await served.run("UPDATE ledger.current_entitlements SET catalog_changed_at = '-infinity'")
            let tracker = Tracker(
                ledger: served.ledger, appStore: .answering(nil), options: TrackerOptions(), logger: Journal().logger)
            try await body(Worker(tracker)) {
                let ann = CustomerName("ann", of: ServedLedger.app)
                return try await served.ledger.customers.entitlements(of: [ann])[0].source == .computed
            }
        }
    }

    @Test("A running worker does so by itself", .timeLimit(.minutes(1)))
    func running() async throws {
        try await withOutdated { worker, outdated in
            #expect(try await outdated())
            let run = Task { try await worker.run() }
            while try await outdated() { try await Task.sleep(for: .milliseconds(20)) }
            run.cancel()
            _ = await run.result
        }
    }

    @Test("`worker --once` does so too")
    func once() async throws {
        try await withOutdated { worker, outdated in
            _ = try await worker.runOnce(maxSeconds: nil)
            #expect(try await outdated() == false)
        }
    }
}
