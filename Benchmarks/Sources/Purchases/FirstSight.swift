import Foundation
import Subscriptions
import Tracking

/// Settlements of receipts that are seen for the first time, each with one one-time purchase.
struct FirstSight {
    let ledger: SubscriptionLedger
    let worker: WorkerID

    /// Receipts in one settlement.
    private static let batch = 100
    private static let receiptBytes = 3_000
    private static let answerBytes = 1_500
    private static let bought = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970) * 1_000 - 600_000)

    /// Stores receipts and settles an answer about each, which says that a product was bought; returns the seconds of the
    /// settlements alone.
    func seconds(of receipts: Int, buying product: ProductID, round: Int) async throws -> Double {
        let app = try await ledger.apps.app(World.app)
        for first in stride(from: 0, to: receipts, by: Self.batch) {
            let uploads = (first..<min(first + Self.batch, receipts)).map { number in
                Upload(
                    appID: app.id, customer: "s\(round)-\(number)",
                    receipt: Self.bytes(Self.receiptBytes, of: "receipt \(round)-\(number)"), imported: false)
            }
            _ = try await ledger.intake.store(uploads)
        }
        var seconds = 0.0
        var left = receipts
        while left > 0 {
            let claims = try await claim(of: app)
            left -= claims.count
            let answers = claims.map { answer(to: $0, buying: product) }
            let start = ContinuousClock.now
            let settled = try await ledger.settlements.settle(answers)
            seconds += (ContinuousClock.now - start) / .seconds(1)
            if let failure = settled.failures.first { throw NotSettled(failure: failure) }
        }
        return seconds
    }

    private func claim(of app: App) async throws -> [Claim] {
        try await ledger.claims.claim(
            for: worker, [Quota(app: app, lane: .new, receipts: Self.batch)], leaseSeconds: 60)
    }

    private func answer(to claim: Claim, buying product: ProductID) -> Settlement {
        let (id, asOf) = ("fresh\(claim.receiptID)", claim.claimedAt)
        let row = TransactionRow(
            path: "receipt.in_app[0]", source: .deviceReceipt, asOf: asOf, transactionID: TransactionID(id),
            originalTransactionID: OriginalTransactionID(id), productID: product,
            // Each purchase has a millisecond of its own: those of one instant may be one purchase under two ids.
            purchasedAt: Self.bought + Delay(milliseconds: claim.receiptID.number))
        let evidence = Evidence(
            environment: .production, bundleID: World.app, asOf: asOf, receiptCreatedAt: asOf, transactions: [row])
        return Settlement(
            claim: claim, finding: .verified(evidence), body: Self.bytes(Self.answerBytes, of: "answer about \(id)"))
    }

    /// Bytes that begin with a text and do not compress.
    private static func bytes(_ count: Int, of text: String) -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        var bytes = Array(text.utf8)
        while bytes.count < count { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
        return bytes
    }

    /// An answer that was not stored.
    struct NotSettled: Error {
        let failure: SettledBatch.Failure
    }
}
