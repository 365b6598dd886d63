import AppStore
import Ledger
import ServiceLifecycle
import Subscriptions

/// A loop of many checks at a time. It claims due receipts as call slots become free, asks Apple, and settles together
/// the answers that arrived meanwhile.
struct CheckLoop: Sendable {
    /// The most receipts claimed at once, and the number of free slots needed to claim again.
    static let claimReceiptsMax = 384
    static let claimSlotsMin = 128
    /// The most settlements at the same time, and the most answers in one.
    static let settlers = 2
    static let settlementAnswersMax = 256
    let tracker: Tracker
    let worker: WorkerID
    /// If given, only receipts that were due by then are claimed.
    var dueBy: Instant?
    /// How long a graceful stop waits for answers, in seconds. Receipts without one are then handed back.
    var patienceSeconds = 5.0
    /// Receives every settled batch.
    var report: @Sendable (CheckedBatch) async -> Void = { _ in }

    private let slots = CallSlots(capacity: Worker.claimsMax)
    private let gate: CallGate
    private let answers = AnswerQueue()
    private let outcomes = OutcomeWindows()
    private let callsInFlight = CallsInFlight()
    private let unasked = UnaskedClaims()

    init(tracker: Tracker, worker: WorkerID) {
        self.tracker = tracker
        self.worker = worker
        gate = CallGate(callsMax: tracker.options.callsMax)
    }

    /// Works until `isOver` returns true, then settles what was asked. `idle` says whether the last round found nothing
    /// to claim.
    func run(isOver: @escaping @Sendable (_ idle: Bool) async -> Bool) async {
        await work(isOver: isOver)
        await tracker.attempt("hand receipts back") { try await tracker.ledger.claims.release(unasked.claims) }
    }

    private func work(isOver: @escaping @Sendable (_ idle: Bool) async -> Bool) async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<Self.settlers { group.addTask { await keepSettling() } }
            await withTaskGroup { race in
                race.addTask { await keepAsking(isOver: isOver) }
                race.addTask { await patience() }
                await race.next()
                race.cancelAll()
            }
            await answers.finish()
        }
    }

    /// Returns `patienceSeconds` after a graceful shutdown began, or when its task is cancelled.
    private func patience() async {
        do {
            try await gracefulShutdown()
            try await Task.sleep(for: .seconds(patienceSeconds))
        } catch {
            // The task was cancelled, because all answers have arrived.
        }
    }

    private func keepAsking(isOver: @Sendable (_ idle: Bool) async -> Bool) async {
        await withDiscardingTaskGroup { calls in
            var turns = ClaimTurns()
            var backoff = ClaimBackoff()
            while true {
                let room = await slots.take(atLeast: Self.claimSlotsMin, atMost: Self.claimReceiptsMax)
                // `isOver` is asked after the wait for slots: with slow answers the wait is long, and a stop may have
                // come meanwhile.
                guard await !isOver(backoff.isIdle) else { return await slots.give(room) }
                let due = await tracker.attempt("claim receipts") {
                    try await tracker.claimDue(
                        as: worker, receiptsMax: room, dueBy: dueBy, inFlight: await callsInFlight.byApp, &turns)
                }
                await slots.give(room - (due?.claims.count ?? 0))
                await callsInFlight.begin(due?.claims ?? [])
                // Only the calls prefer the thread of the HTTP client. Claims and settlements there would wait for them.
                for claim in due?.claims ?? [] {
                    calls.addTask(executorPreference: tracker.options.executor) { await ask(claim) }
                }
                for app in due?.quarantined ?? [] { await askAlone(of: app) }
                backoff.record(due)
                await rest(seconds: backoff.restSeconds)
            }
        }
    }

    private func ask(_ claim: Claim) async {
        let asked = await answer(about: claim)
        await callsInFlight.end(claim)
        guard let asked else {
            await unasked.add(claim)
            return await slots.give(1)
        }
        await answers.add(Answered(claim: claim, asked: asked, answeredAt: claim.databaseNow))
    }

    /// Asks Apple when a call is free; returns nil where the process stopped before an answer came.
    private func answer(about claim: Claim) async -> AppleAnswer? {
        await gate.enter()
        defer { gate.leave() }
        guard !Task.isCancelled else { return nil }
        let asked = await tracker.ask(claim)
        return Task.isCancelled && asked.isSilence ? nil : asked
    }

    /// Checks a quarantined receipt, which may crash the process, while no other call is under way.
    private func askAlone(of app: App) async {
        let all = await slots.take(atLeast: slots.capacity, atMost: slots.capacity)
        await tracker.attempt("check a quarantined receipt") {
            guard let claim = try await tracker.claimQuarantined(of: app, as: worker, dueBy: dueBy) else { return }
            await report(try await tracker.check(claim))
        }
        await slots.give(all)
    }

    private func keepSettling() async {
        while true {
            let batch = await answers.next(atMost: Self.settlementAnswersMax)
            guard !batch.isEmpty else { return }
            await settle(batch.map { Checked($0.claim, $0.asked, answeredAt: $0.answeredAt) })
            await slots.give(batch.count)
        }
    }

    private func settle(_ batch: [Checked]) async {
        let settled = await tracker.attempt("settle answers", tries: 5) {
            try await tracker.settle(batch)
        }
        if let settled { await report(settled) }
        await tracker.adaptRates(to: batch, outcomes)
    }
}

/// How fast a process claims: immediately while there is work, slower while there is none or the database fails.
struct ClaimBackoff: Sendable {
    /// The longest rest while the database answers, in seconds.
    static let idleSecondsMax = 0.25
    /// Whether the last round found nothing.
    private(set) var isIdle = false
    private var idleSeconds = idleSecondsMax
    private var failures = 0

    /// Records the result of a round of claiming; nil when it failed.
    mutating func record(_ due: DueClaims?) {
        failures = due == nil ? failures + 1 : 0
        isIdle = due.map { $0.claims.isEmpty && $0.quarantined.isEmpty } ?? false
        idleSeconds = min(Self.idleSecondsMax, due?.refillSeconds ?? .infinity)
    }

    /// Seconds to rest before the next round.
    var restSeconds: Double {
        guard failures == 0 else { return min(30, 0.5 * Double(1 << min(failures, 6))) }
        return isIdle ? idleSeconds : 0
    }
}

/// Waits; a shutdown ends the wait.
func rest(seconds: Double) async {
    guard seconds > 0 else { return }
    await cancelWhenGracefulShutdown {
        // Only a cancellation makes the sleep fail, and then there is nothing left to wait for.
        try? await Task.sleep(for: .seconds(seconds))
    }
}
