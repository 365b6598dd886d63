import Foundation
import Ledger
import Subscriptions

/// Subscriptions with a receipt each, which renew when they are told to.
struct Renewals {
    static let product: ProductID = "com.example.tracker.monthly"
    /// Receipts in one settlement.
    private static let batch = 100
    private static let answerBytes = 1_500

    let ledger: SubscriptionLedger
    let world: World
    let worker: WorkerID

    /// Stores the receipts.
    func upload(_ count: Int) async throws {
        let app = try await ledger.apps.app(World.app)
        for first in stride(from: 0, to: count, by: Self.batch) {
            _ = try await ledger.intake.store(
                (first..<min(first + Self.batch, count)).map { number in
                    Upload(
                        appID: app.id, customer: "r\(number)", receipt: Array("receipt \(number)".utf8),
                        imported: false)
                })
        }
    }

    /// Settles one more period of each subscription whose receipt is in a half; returns the seconds of the settlements.
    func settle(round: Int, half: Int) async throws -> Double {
        let app = try await ledger.apps.app(World.app)
        try await world.sql(
            """
            UPDATE ledger.poll_schedule SET lane = 'sweep',
                due_at = CASE receipt_id % 2 WHEN \(half) THEN now() ELSE now() + interval '1 day' END
            """)
        var seconds = 0.0
        while true {
            let claims = try await ledger.claims.claim(
                for: worker, [Quota(app: app, lane: .sweep, receipts: Self.batch)], leaseSeconds: 60)
            guard !claims.isEmpty else { return seconds }
            let answers = claims.map { answer(to: $0, periods: round + 1) }
            let start = ContinuousClock.now
            let settled = try await ledger.settlements.settle(answers)
            seconds += (ContinuousClock.now - start) / .seconds(1)
            if let failure = settled.failures.first { throw FirstSight.NotSettled(failure: failure) }
        }
    }

    /// Brings the summaries up to date; returns the seconds that it takes.
    func summarise() async throws -> Double {
        while try await ledger.feed.sequence() > 0 {}
        let start = ContinuousClock.now
        while try await ledger.operations.summarise()?.isBehind == true {}
        return (ContinuousClock.now - start) / .seconds(1)
    }

    /// Weeks one after the other, on the second day of the newest.
    private func answer(to claim: Claim, periods: Int) -> PendingAnswer {
        let (id, first) = (OriginalTransactionID("r\(claim.receiptID)"), Instant(milliseconds: 1_700_000_000_000))
        let asOf = first + .days(7 * Int64(periods) - 6)
        let body = Array("answer \(periods) about \(id)".utf8) + [UInt8](repeating: 0x20, count: Self.answerBytes)
        return PendingAnswer(claim: claim, body: body, asOf: asOf, fingerprint: nil) {
            let rows = (0..<periods).map { index in
                let begins = first + .days(7 * Int64(index))
                return TransactionRow(
                    path: "latest_receipt_info[\(index)]", source: .latestReceiptInfo, asOf: asOf,
                    transactionID: TransactionID("\(id)-\(index)"), originalTransactionID: id,
                    webOrderLineItemID: WebOrderLineItemID("\(id)-\(index)"), productID: Self.product,
                    purchasedAt: begins, expiresAt: begins + .days(7), groupID: "group",
                    ownership: .purchased)
            }
            let renewal = RenewalRow(
                path: "pending_renewal_info[0]", asOf: asOf, originalTransactionID: id, productID: Self.product,
                renewsToProductID: Self.product, willRenew: true)
            let evidence = Evidence(
                environment: .production, bundleID: World.app, asOf: asOf, receiptCreatedAt: asOf, transactions: rows,
                renewals: [renewal])
            return PendingAnswer.Interpretation(finding: .verified(evidence), latestReceipt: nil)
        }
    }
}
