import Subscriptions

extension Tracker {
    /// The receipts tried at once while Apple answers about no app.
    static let probesMax = 6

    /// Claims due receipts, none of lane `quarantine`, within budgets and limits of calls; only tests give `now`.
    func claimDue(
        as worker: WorkerID, receiptsMax: Int, dueBy: Instant? = nil, inFlight: [Int32: Int] = [:],
        _ turns: inout ClaimTurns, now: () -> ContinuousClock.Instant = { .now }
    ) async throws -> DueClaims {
        // A run that ends looks at everything, because it must leave nothing behind.
        let marks = dueBy == nil ? turns.lowWater.marks(now: now()) : []
        do {
            let (due, busySeconds) = try await ledger.claims.scan(limit: receiptsMax, by: dueBy, from: marks)
            let claims = try await claim(
                due, as: worker, receiptsMax: receiptsMax, dueBy: dueBy, inFlight: inFlight, &turns, from: marks)
            turns.lowWater.looked(now: now(), busySeconds: busySeconds)
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
        let apps = try await ledger.operations.appsByID()
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
    var lanes = LaneTurns()
    /// The app that comes first in the next batch.
    var nextApp: Int32 = .min
    var lowWater = LowWater()
}

struct DueClaims: Sendable {
    var claims: [Claim] = []
    /// Apps with due receipts that must be checked alone.
    var quarantined: [App] = []
    /// Seconds after which an exhausted budget is worth another try; nil while nothing is due.
    var refillSeconds: Double?
}

extension App {
    /// The seconds in which half of the calls allowed at once are refilled: a longer rest wastes some. Nil: no limit.
    var refillSeconds: Double? {
        guard callsPerSecondNow > 0 else { return nil }
        let atOnce = callsPerSecond > 0 ? burst * callsPerSecondNow / callsPerSecond : callsPerSecondNow
        return max(1, atOnce) / callsPerSecondNow / 2
    }
}

/// The division of one batch among apps, in equal shares.
enum BatchPlan {
    /// Returns how many receipts of each app go into a batch of at most `receiptsMax`. The others get what one does not
    /// need. When there are more apps than places they take turns; `first` is the app whose turn it is.
    static func shares(of due: [Int32: Int], receiptsMax: Int, first: Int32 = .min) -> [Int32: Int] {
        let inLine = due.filter { $0.value > 0 }.keys.sorted()
        var waiting = inLine.filter { $0 >= first } + inLine.filter { $0 < first }
        var shares: [Int32: Int] = [:]
        var room = receiptsMax
        while room > 0, !waiting.isEmpty {
            let each = max(1, room / waiting.count)
            for app in waiting.prefix(room) {
                let share = min(each, due[app, default: 0] - shares[app, default: 0])
                shares[app, default: 0] += share
                room -= share
            }
            waiting.removeAll { shares[$0, default: 0] >= due[$0, default: 0] }
        }
        return shares
    }

    /// Returns the app that is first in the next batch: the one after the last app served, counted round from `first`.
    static func next(after shares: [Int32: Int], first: Int32) -> Int32 {
        let served = shares.keys
        guard let last = served.filter({ $0 < first }).max() ?? served.max() else { return first }
        return last &+ 1
    }
}

/// The turns of the lanes within an app: of ten calls seven are for receipts that a customer waits for, and every other
/// lane has one. The turn of a lane with nothing due goes to the most urgent lane. Turns continue from batch to batch,
/// because with a small budget a batch is a single call.
struct LaneTurns: Sendable {
    static let order: [Lane] = [
        .new, .expiring, .retry, .new, .expiring, .imported, .new, .expiring, .sweep, .expiring,
    ]

    private var given: [Int32: Int] = [:]

    mutating func quotas(of due: [DueReceipts], granted: [Int32: Int]) -> [DueReceipts] {
        Dictionary(grouping: due, by: \.appID).sorted { $0.key < $1.key }.flatMap { app, lanes in
            let byUrgency = Lane.allCases.flatMap { lane in lanes.filter { $0.lane == lane } }
            return share(granted[app, default: 0], of: app, among: byUrgency)
        }
    }

    private mutating func share(_ calls: Int, of app: Int32, among lanes: [DueReceipts]) -> [DueReceipts] {
        var left = lanes.map(\.receipts)
        for _ in 0..<min(calls, left.reduce(0, +)) {
            let turn = Self.order[given[app, default: 0] % Self.order.count]
            given[app, default: 0] += 1
            let called = lanes.indices.first { lanes[$0].lane == turn && left[$0] > 0 }
            guard let served = called ?? left.firstIndex(where: { $0 > 0 }) else { break }
            left[served] -= 1
        }
        return zip(lanes, left).compactMap { lane, left in
            guard left < lane.receipts else { return nil }
            return DueReceipts(appID: app, lane: lane.lane, receipts: lane.receipts - left)
        }
    }
}

/// The marks where the search for due receipts begins in each lane. Receipts due before a mark were claimed; only dead
/// index entries are there, which PostgreSQL cannot remove while a transaction stays open.
///
/// Receipts also appear below the marks: imported ones stand by their expiry, workers hand some back, and a slow commit
/// shows some late. So a look begins at the start every second, or less often when that keeps the database busy.
struct LowWater: Sendable {
    /// The interval between full looks, in seconds.
    static let fullLookSeconds = 1.0
    /// The wait after a full look, as a multiple of the time for which the look kept the database busy.
    static let fullLookRest = 20.0
    /// The longest such wait, in seconds. A receipt below its lane's mark may stay unseen for that long.
    static let fullLookRestSecondsMax = 60.0
    /// Receipts that became due this recently are always looked at: they may have been committed after others were
    /// claimed. Each second of it costs two dead entries per receipt claimed in a second.
    static let margin = Delay.seconds(2)

    private struct Place: Hashable {
        let app: Int32
        let lane: Lane
    }

    private var places: [Place: Instant] = [:]
    private var fullLook: (beganAt: ContinuousClock.Instant, marksBefore: [Place: Instant])?
    private var nextFullLookAt: ContinuousClock.Instant?

    /// Returns the marks of a look that begins now; none when it is time for a full look.
    mutating func marks(now: ContinuousClock.Instant) -> [DueMark] {
        if nextFullLookAt.map({ now >= $0 }) ?? true {
            fullLook = (now, places)
            places = [:]
        }
        return places.map { DueMark(appID: $0.app, lane: $0.lane, dueAt: $1) }
    }

    /// Records that a look, which kept the database busy for `busySeconds`, and the claims after it succeeded.
    mutating func looked(now: ContinuousClock.Instant, busySeconds: Double) {
        guard let ended = fullLook else { return }
        let restSeconds = min(busySeconds * Self.fullLookRest, Self.fullLookRestSecondsMax)
        nextFullLookAt = max(ended.beganAt + .seconds(Self.fullLookSeconds), now + .seconds(restSeconds))
        fullLook = nil
    }

    /// Records that a look or the claims after it failed: the marks that a full look was to replace stay valid. A
    /// database that was too slow is spared for a while; one that was unreachable did no work.
    mutating func failed(now: ContinuousClock.Instant, wasTooSlow: Bool) {
        guard let failed = fullLook else { return }
        places = failed.marksBefore
        if wasTooSlow { nextFullLookAt = now + .seconds(Self.fullLookRestSecondsMax) }
        fullLook = nil
    }

    mutating func advance(past claims: [Claim]) {
        for claim in claims { advance(claim.app.id, claim.lane, dueAt: claim.dueAt, claimedAt: claim.claimedAt) }
    }

    mutating func advance(_ app: Int32, _ lane: Lane, dueAt: Instant, claimedAt: Instant) {
        let place = Place(app: app, lane: lane)
        let mark = min(dueAt, claimedAt - Self.margin)
        places[place] = max(places[place] ?? mark, mark)
    }
}
