import Ledger
import Subscriptions

extension Tracker {
    /// The receipts tried at once while Apple answers about no app.
    static let probesMax = 6

    /// Claims at most `receiptsMax` due receipts, within the apps' budgets and limits of calls under way, and none of
    /// lane `quarantine`. Only tests replace the clock, with `now`.
    func claimDue(
        as worker: WorkerID, receiptsMax: Int, dueBy: Instant? = nil, inFlight: [Int32: Int] = [:],
        _ turns: inout ClaimTurns, now: () -> ContinuousClock.Instant = { .now }
    ) async throws -> DueClaims {
        // A run that ends looks at everything, because it must leave nothing behind.
        let marks = dueBy == nil ? turns.lowWater.marks(now: now()) : []
        do {
            let look = try await ledger.claims.scan(limit: receiptsMax, by: dueBy, from: marks)
            let claims = try await claim(
                look.due, as: worker, receiptsMax: receiptsMax, dueBy: dueBy, inFlight: inFlight, &turns, from: marks)
            turns.lowWater.looked(now: now(), busySeconds: look.busySeconds)
            return claims
        } catch {
            turns.lowWater.failed(now: now(), wasTooSlow: error.storageFailure?.isTimeout == true)
            throw error
        }
    }

    private func claim(
        _ due: [DueReceipts], as worker: WorkerID, receiptsMax: Int, dueBy: Instant?, inFlight: [Int32: Int],
        _ turns: inout ClaimTurns, from marks: [DueMark]
    ) async throws -> DueClaims {
        guard !due.isEmpty else { return DueClaims() }
        let apps = Dictionary(uniqueKeysWithValues: try await ledger.apps.all().map { ($0.id, $0) })
        let usual = due.filter { $0.lane != .quarantine }
        let lone = due.filter { $0.lane == .quarantine }
        var waiting: [Int32: Int] = [:]
        for (id, lanes) in Dictionary(grouping: usual, by: \.appID) {
            let callsMax = apps[id]?.callsInFlightMax.map { max(0, $0 - inFlight[id, default: 0]) }
            waiting[id] = min(lanes.reduce(0) { $0 + $1.receipts }, callsMax ?? .max)
        }
        let isAppleAway = apps.values.contains { $0.appleFailures > CallRateLimit.failuresTolerated }
        let shares = BatchPlan.shares(
            of: waiting, receiptsMax: isAppleAway ? min(receiptsMax, Self.probesMax) : receiptsMax,
            first: turns.nextApp)
        turns.nextApp = BatchPlan.next(after: shares, first: turns.nextApp)
        let claims = try await claim(usual, shares, apps: apps, as: worker, dueBy: dueBy, &turns, from: marks)
        return DueClaims(
            claims: claims, quarantined: lone.compactMap { apps[$0.appID] },
            refillSeconds: waiting.compactMap { $1 > 0 ? apps[$0]?.refillSeconds : nil }.min())
    }

    /// Claims one quarantined receipt of an app; returns nil when its budget is used up or another worker was faster.
    func claimQuarantined(of app: App, as worker: WorkerID, dueBy: Instant?) async throws -> Claim? {
        var turns = ClaimTurns()
        let due = DueReceipts(appID: app.id, lane: .quarantine, receipts: 1)
        return try await claim([due], [app.id: 1], apps: [app.id: app], as: worker, dueBy: dueBy, &turns, from: [])
            .first?.inFull
    }

    private func claim(
        _ due: [DueReceipts], _ shares: [Int32: Int], apps: [Int32: App], as worker: WorkerID, dueBy: Instant?,
        _ turns: inout ClaimTurns, from marks: [DueMark]
    ) async throws -> [Claim] {
        guard !shares.isEmpty else { return [] }
        let granted = try await ledger.claims.takeBudget(
            shares.compactMap { id, calls in apps[id].map { (app: $0, calls: calls) } })
        let quotas = turns.lanes.quotas(of: due, granted: granted).compactMap { share in
            apps[share.appID].map { app in
                Quota(
                    app: app, lane: share.lane, receipts: share.receipts,
                    dueFrom: marks.first { $0.appID == app.id && $0.lane == share.lane }?.dueAt)
            }
        }
        guard !quotas.isEmpty else { return [] }
        let claims = try await ledger.claims.claim(
            for: worker, quotas, leaseSeconds: options.leaseSeconds, dueBy: dueBy)
        metrics.claimed(claims.count)
        turns.lowWater.advance(past: claims)
        let claimed = Dictionary(grouping: claims, by: \.app.id).mapValues(\.count)
        try await ledger.claims.returnBudget(granted.merging(claimed) { $0 - $1 })
        return claims
    }
}

/// The state that one process keeps from one round of claiming to the next.
struct ClaimTurns: Sendable {
    /// The turns of the lanes within each app.
    var lanes = LaneTurns()
    /// The app that comes first in the next batch.
    var nextApp: Int32 = .min
    /// Where the look at each lane begins.
    var lowWater = LowWater()
}

/// The result of a round of claiming.
struct DueClaims: Sendable {
    /// Receipts to ask about now.
    var claims: [Claim] = []
    /// Apps with due receipts that must be checked alone.
    var quarantined: [App] = []
    /// Seconds after which an exhausted budget is worth another try; nil while nothing is due.
    var refillSeconds: Double?
}

extension App {
    /// The seconds in which half of the calls allowed at once are refilled, at the present rate; a longer rest would
    /// waste some of them. Nil without a limit.
    var refillSeconds: Double? {
        guard callsPerSecondNow > 0 else { return nil }
        let atOnce = callsPerSecond > 0 ? burst * callsPerSecondNow / callsPerSecond : callsPerSecondNow
        return max(1, atOnce) / callsPerSecondNow / 2
    }
}
