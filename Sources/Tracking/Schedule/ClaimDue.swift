import Ledger
import Subscriptions

extension Tracker {
    /// Claims at most `receiptsMax` receipts that are due, within the apps' budgets; nothing of lane `quarantine`.
    func claimDue(
        as worker: WorkerID, receiptsMax: Int, dueBy: Instant? = nil, sweepFirst: Bool = false
    ) async throws -> DueClaims {
        let due = try await ledger.due(limit: receiptsMax, by: dueBy)
        let lone = due.filter { $0.lane == .quarantine }
        guard !due.isEmpty else { return DueClaims() }
        let apps = Dictionary(uniqueKeysWithValues: try await ledger.apps().map { ($0.id, $0) })
        let shares = BatchPlan.shares(
            of: due.filter { $0.lane != .quarantine }, receiptsMax: receiptsMax, sweepFirst: sweepFirst)
        let claims = try await claim(shares, apps: apps, as: worker, dueBy: dueBy, sweepFirst: sweepFirst)
        return DueClaims(claims: claims, quarantined: lone.compactMap { apps[$0.appID] })
    }

    /// Claims one quarantined receipt of an app; nil when its budget is used up or another worker was faster.
    func claimQuarantined(of app: App, as worker: WorkerID, dueBy: Instant?) async throws -> Claim? {
        let share = DueReceipts(appID: app.id, lane: .quarantine, receipts: 1)
        return try await claim([share], apps: [app.id: app], as: worker, dueBy: dueBy, sweepFirst: false).first
    }

    private func claim(
        _ shares: [DueReceipts], apps: [Int32: App], as worker: WorkerID, dueBy: Instant?, sweepFirst: Bool
    ) async throws -> [Claim] {
        let wanted = Dictionary(grouping: shares, by: \.appID).mapValues { $0.reduce(0) { $0 + $1.receipts } }
        guard !wanted.isEmpty else { return [] }
        let granted = try await ledger.takeBudget(
            wanted.compactMap { id, calls in apps[id].map { (app: $0, calls: calls) } })
        let quotas = BatchPlan.quotas(of: shares, granted: granted, sweepFirst: sweepFirst).compactMap { share in
            apps[share.appID].map { Quota(app: $0, lane: share.lane, receipts: share.receipts) }
        }
        guard !quotas.isEmpty else { return [] }
        let claims = try await ledger.claim(for: worker, quotas, leaseSeconds: options.leaseSeconds, dueBy: dueBy)
        metrics.claimed(claims.count)
        let claimed = Dictionary(grouping: claims, by: \.app.id).mapValues(\.count)
        try await ledger.returnBudget(granted.merging(claimed) { $0 - $1 })
        return claims
    }
}

/// What a round of claiming brought.
struct DueClaims: Sendable {
    /// Receipts to ask about now.
    var claims: [Claim] = []
    /// Apps with due receipts that have to be asked about alone.
    var quarantined: [App] = []
}
