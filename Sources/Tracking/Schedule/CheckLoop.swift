import AppStore
import DequeModule
import Logging
import ServiceLifecycle
import Subscriptions
import Synchronization

/// A loop of many checks: it claims due receipts as call slots become free, asks Apple, and settles answers together.
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
    var report: @Sendable (SettledBatch) async -> Void = { _ in }

    private let slots = CallSlots()
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

    /// Whether it checks as many receipts as it can: the slots for another round of claims are in use.
    var isFull: Bool { get async { await slots.free < Self.claimReceiptsMax } }

    /// Works until `isOver` returns true, then settles what was asked. `idle`: whether the last round found nothing.
    func run(isOver: @escaping @Sendable (_ idle: Bool) async -> Bool) async {
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
        await tracker.attempt("hand receipts back") { try await tracker.ledger.claims.release(unasked.claims) }
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
                // `isOver` is asked after the wait for slots, which is long with slow answers: a stop may have come.
                guard await !isOver(backoff.isIdle) else { return await slots.give(room) }
                let due = await tracker.attempt("claim receipts") {
                    try await tracker.claimDue(
                        as: worker, receiptsMax: room, dueBy: dueBy, inFlight: await callsInFlight.byApp, &turns)
                }
                await slots.give(room - (due?.claims.count ?? 0))
                await callsInFlight.begin(due?.claims ?? [])
                // Only the calls prefer the HTTP client's thread: claims and settlements would wait for them there.
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
        await answers.add((claim, asked, claim.databaseNow))
    }

    /// Asks Apple when a call is free; returns nil where the process stopped before an answer came.
    private func answer(about claim: Claim) async -> AppStoreAnswer? {
        await gate.enter()
        defer { gate.leave() }
        guard !Task.isCancelled else { return nil }
        let asked = await tracker.ask(claim)
        return Task.isCancelled && asked.saysNothing ? nil : asked
    }

    /// Checks a quarantined receipt, which may crash the process, while no other call is under way.
    private func askAlone(of app: App) async {
        let all = await slots.take(atLeast: CallSlots.capacity, atMost: CallSlots.capacity)
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
        let settled = await tracker.attempt("settle answers", tries: 5) { try await tracker.settleAndFollowUp(batch) }
        if let settled { await report(settled) }
        await tracker.adaptRates(to: batch, outcomes)
    }
}

/// How fast a process claims: immediately while there is work, slower while there is none or the database fails.
struct ClaimBackoff: Sendable {
    /// The longest rest while the database answers, in seconds.
    static let idleSecondsMax = 0.25
    private(set) var isIdle = false
    private var idleSeconds = idleSecondsMax
    private var failures = 0

    /// Records the result of a round of claiming; nil when it failed.
    mutating func record(_ due: DueClaims?) {
        failures = due == nil ? failures + 1 : 0
        isIdle = due.map { $0.claims.isEmpty && $0.quarantined.isEmpty } ?? false
        idleSeconds = min(Self.idleSecondsMax, due?.refillSeconds ?? .infinity)
    }

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

/// A claim with what Apple said, and the database's clock when it came.
typealias Answered = (claim: Claim, asked: AppStoreAnswer, answeredAt: Instant)

/// Answers on their way from the calls to the settlements. A settlement takes all that have arrived meanwhile.
actor AnswerQueue {
    /// How long the first answer waits for others, in milliseconds: one costs half as much to settle as a hundred.
    static let lingerMilliseconds = 40

    private var answers: [Answered] = []
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var isFinished = false

    func add(_ answer: Answered) {
        answers.append(answer)
        if !waiting.isEmpty { waiting.removeFirst().resume() }
    }

    /// Returns the answers that arrived until shortly after the first, at most `count`. Empty when no more will come.
    func next(atMost count: Int) async -> [Answered] {
        while true {
            while answers.isEmpty, !isFinished { await withCheckedContinuation { waiting.append($0) } }
            if answers.count < count, !isFinished {
                // The task is cancelled only when the process ends. Then there is no need to wait.
                try? await Task.sleep(for: .milliseconds(Self.lingerMilliseconds))
            }
            let batch = Array(answers.prefix(count))
            answers.removeFirst(batch.count)
            if !batch.isEmpty || isFinished { return batch }
        }
    }

    func finish() {
        isFinished = true
        for caller in waiting { caller.resume() }
        waiting = []
    }
}

/// A limit on the receipts that one process has claimed and not yet settled.
actor CallSlots {
    static let capacity = Worker.claimsMax
    private(set) var free = capacity
    private var waiting: (atLeast: Int, turn: CheckedContinuation<Void, Never>)?

    /// Takes up to `atMost` slots as soon as `atLeast` are free. One caller at a time.
    func take(atLeast: Int, atMost: Int) async -> Int {
        if free < atLeast { await withCheckedContinuation { waiting = (atLeast, $0) } }
        let taken = min(free, atMost)
        free -= taken
        return taken
    }

    func give(_ count: Int) {
        free += count
        guard let waiting, free >= waiting.atLeast else { return }
        self.waiting = nil
        waiting.turn.resume()
    }
}

/// The number of calls of each app that are under way in this process or wait for their turn.
actor CallsInFlight {
    /// The calls by app; apps without calls are left out.
    private(set) var byApp: [Int32: Int] = [:]

    func begin(_ claims: [Claim]) {
        for claim in claims { byApp[claim.app.id, default: 0] += 1 }
    }

    /// Counts a call as ended: it was answered, or never will be.
    func end(_ claim: Claim) {
        let left = byApp[claim.app.id, default: 0] - 1
        byApp[claim.app.id] = left > 0 ? left : nil
    }
}

extension App {
    /// The longest time Apple may take to answer, in seconds. Slower answers would pile up: then fewer calls are made.
    static let latencySecondsMax = 5.0

    /// The most calls under way at a time in one process: rate times latency. Nil where a process makes no more anyway.
    var callsInFlightMax: Int? {
        let calls = (callsPerSecondNow * Self.latencySecondsMax).rounded(.up)
        return calls == 0 || calls >= Double(Worker.claimsMax) ? nil : max(1, Int(calls))
    }
}

/// Claims that have no answer because the process stopped.
actor UnaskedClaims {
    private(set) var claims: [Claim] = []

    func add(_ claim: Claim) { claims.append(claim) }
}

/// A limit on the calls to Apple at a time. Claimed receipts wait here, in order, because the HTTP client gives up a
/// call that waits long for a connection, and the time of a call begins with it.
final class CallGate: Sendable {
    private struct State {
        var free: Int
        var waiting: Deque<CheckedContinuation<Void, Never>> = []
    }

    private let state: Mutex<State>

    init(callsMax: Int) { state = Mutex(State(free: max(1, callsMax))) }

    /// Returns when a call may begin. The caller then calls `leave`.
    func enter() async {
        await withCheckedContinuation { turn in
            let isFree = state.withLock { state in
                guard state.free > 0 else {
                    state.waiting.append(turn)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { turn.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
    }
}
