import AppStore
import Postgres
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import Tracking

/// Apple does not answer the check of an upload, and its lease runs out meanwhile: a worker takes the receipt. The upload
/// is stored, so its sender gets the worker's result or that it is pending.
@Suite("An upload whose check loses its lease is answered all the same")
struct LostLeaseTests {
    /// Submits a receipt whose lease another worker takes during the first call to Apple; returns the answer.
    private func submit(otherLeaseSeconds: Double, answerSeconds: Double) async throws -> SubmissionAnswer {
        let answered = Mutex<SubmissionAnswer?>(nil)
        try await ServedLedger.with { served in
            let other = try await served.ledger.claims.startWorker(host: "another", process: 2)
            let calls = Mutex(0)
            let store = ScriptedStore { _ in
                let isFirst = calls.withLock { calls -> Bool in
                    calls += 1
                    return calls == 1
                }
                if isFirst {
                    do {
                        try await served.run("UPDATE ledger.poll_schedule SET due_at = now() - interval '1 s'")
                        let rows = try await served.database.query(.test("SELECT receipt_id FROM ledger.receipt"))
                        let receipt = ReceiptID(try #require(try rows.first?.int8("receipt_id")))
                        _ = try await served.ledger.claims.claim(
                            receipt, for: other, leaseSeconds: otherLeaseSeconds)
                    } catch { Issue.record(error) }
                }
                return .saying(isFirst ? nil : Sample.verified())
            }
            let tracker = Tracker(
                ledger: served.ledger, appStore: store.client, options: TrackerOptions(), logger: Journal().logger)
            var limits = SubmissionLimits()
            limits.answerSeconds = answerSeconds
            let answer = try await tracker.submit(
                Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt(1)), within: limits)
            answered.withLock { $0 = answer }
        }
        return try #require(answered.withLock { $0 })
    }

    @Test("It is pending while the worker asks")
    func pending() async throws {
        guard case .pending = try await submit(otherLeaseSeconds: 60, answerSeconds: 0.5) else {
            Issue.record("nobody could have settled it")
            return
        }
    }

    @Test("It is settled once the receipt is free again")
    func settled() async throws {
        guard case .settled(let settled, _) = try await submit(otherLeaseSeconds: 1, answerSeconds: 20) else {
            Issue.record("the receipt was free again after a second")
            return
        }
        #expect(settled.outcome == .verified)
    }
}
