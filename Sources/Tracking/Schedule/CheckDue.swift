import Ledger
import Subscriptions

extension Tracker {
    /// Claims what is due within the apps' budgets, asks Apple, settles; an empty batch when nothing is due.
    func checkDue(as worker: WorkerID, dueBy: Instant? = nil, sweepFirst: Bool = false) async throws -> CheckedBatch {
        let due = try await ledger.due(limit: Worker.batchReceiptsMax, by: dueBy)
        guard !due.isEmpty else { return CheckedBatch(settled: []) }
        let apps = Dictionary(uniqueKeysWithValues: try await ledger.apps().map { ($0.id, $0) })
        let shares = BatchPlan.shares(of: due, receiptsMax: Worker.batchReceiptsMax, sweepFirst: sweepFirst)
        let wanted = Dictionary(grouping: shares, by: \.appID).mapValues { $0.reduce(0) { $0 + $1.receipts } }
        let granted = try await ledger.takeBudget(
            wanted.compactMap { id, calls in apps[id].map { (app: $0, calls: calls) } })
        let quotas = BatchPlan.quotas(of: shares, granted: granted, sweepFirst: sweepFirst).compactMap { share in
            apps[share.appID].map { Quota(app: $0, lane: share.lane, receipts: share.receipts) }
        }
        guard !quotas.isEmpty else { return CheckedBatch(settled: []) }
        let claims = try await ledger.claim(for: worker, quotas, leaseSeconds: options.leaseSeconds, dueBy: dueBy)
        let claimed = Dictionary(grouping: claims, by: \.app.id).mapValues(\.count)
        try await ledger.returnBudget(granted.merging(claimed) { $0 - $1 })
        guard !claims.isEmpty else { return CheckedBatch(settled: []) }
        return CheckedBatch(settled: try await check(claims, by: worker))
    }
}
