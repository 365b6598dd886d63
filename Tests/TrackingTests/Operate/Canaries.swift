import Subscriptions
import Testing

@testable import Tracking

extension TestLedger {
    /// Receipts that Apple vouched for, each with a subscription of its own that is active.
    func canaries(_ count: Int) async throws -> [ReceiptID] {
        var receipts: [ReceiptID] = []
        for index in 0..<count { receipts.append(try await upload("canary \(index)")) }
        try await vouch(for: receipts)
        return receipts
    }

    /// Apple vouches for receipts, all in one batch.
    func vouch(for receipts: [ReceiptID]) async throws {
        _ = try await answer(receipts) { receipt in
            Answer(from: at(-9), asOf: at(-1)).but { $0.subscription = OriginalTransactionID("s\(receipt)") }.finding
        }
    }

    /// Apple refuses receipts, all in one batch.
    @discardableResult
    func refuse(
        _ receipts: [ReceiptID], _ kind: Refusal.Kind = .notAuthentic, speedup: Int = 1
    ) async throws -> [Settled] {
        try await answer(receipts, speedup: speedup) { _ in rejected(kind) }
    }

    /// Says that Apple vouched again for other receipts of the app in this minute.
    func vouched(_ answers: Int) async throws {
        try await run(
            "INSERT INTO ledger.verified_minute VALUES (\(app.id), date_trunc('minute', now()), 0, \(answers))")
    }

    /// Lets minutes pass for everything that incidents are made of.
    func pass(minutes: Int) async throws {
        let past = "- interval '\(minutes) minutes'"
        try await run(
            """
            UPDATE ledger.refusal SET refused_at = refused_at \(past);
            UPDATE ledger.verified_minute SET minute = minute \(past);
            UPDATE ledger.incident
            SET opened_at = opened_at \(past), recognised_at = recognised_at \(past), last_at = last_at \(past),
                closed_at = closed_at \(past);
            """)
    }

    /// The incidents: running or not, asked, refused.
    func incidents() async throws -> [[Cell]] {
        try await database.cells(
            """
            SELECT CASE WHEN closed_at IS NULL THEN 'running' ELSE 'over' END AS state, asked, refused
            FROM ledger.incident ORDER BY incident_id
            """)
    }

    /// How many refusals count against receipts, in the order of receipts.
    func rejections() async throws -> [String] {
        try await rows("SELECT rejections FROM ledger.receipt ORDER BY receipt_id")
    }

    private func answer(
        _ receipts: [ReceiptID], speedup: Int = 1, _ finding: (ReceiptID) -> Finding
    ) async throws -> [Settled] {
        var batch: [Settlement] = []
        var ledger = ledger
        ledger.speedup = speedup
        for receipt in receipts {
            let claim = try await ledger.claims.claim(receipt, for: worker, leaseSeconds: 60)
            batch.append(settlement(claim, finding(receipt)))
        }
        let settled = try await ledger.settlements.settleInFull(batch)
        #expect(settled.failures.map(\.reason) == [])
        return settled.settled
    }
}
