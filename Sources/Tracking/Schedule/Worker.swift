import Logging
import ServiceLifecycle
import Subscriptions

/// The scheduler: it checks due receipts and places events in the feed. Any number may run, on any number of machines.
package struct Worker: Service {
    /// The most receipts that one process has claimed and not settled. While some are being asked about, others wait
    /// for a connection or for their settlement, so that no stage waits for another.
    static let claimsMax = 1_280
    /// The most calls and connections to Apple at a time. More are answered in one burst, and rest until it is settled.
    package static let callsMax = 320

    let tracker: Tracker

    package init(_ tracker: Tracker) { self.tracker = tracker }

    /// Works until graceful shutdown, then finishes the claimed receipts. Does so too and throws `LedgerError`
    /// `mismatch` when the schema has changed meanwhile and only later programs work with it.
    package func run() async throws {
        guard let worker = await announced() else { return }
        tracker.logger.info("worker started", metadata: ["worker": "\(worker.number)"])
        try await withHeartbeat(as: worker, while: Checking(worker: self, id: worker))
    }

    /// Sends heartbeats while `work` runs. From a graceful stop on, its steps wait only briefly for a database that is
    /// away: what they leave undone, another worker takes over within one lease. When a heartbeat shows that this
    /// program is out of date, `work` stops gracefully and the error is thrown.
    func withHeartbeat(as worker: WorkerID, while work: any Service) async throws {
        let configuration = ServiceGroupConfiguration(
            services: [
                .init(service: work, successTerminationBehavior: .gracefullyShutdownGroup),
                .init(
                    service: Heartbeat(tracker: tracker, worker: worker),
                    successTerminationBehavior: .gracefullyShutdownGroup,
                    failureTerminationBehavior: .gracefullyShutdownGroup),
            ], logger: tracker.logger)
        try await withGracefulShutdownHandler {
            try await ServiceGroup(configuration: configuration).run()
        } onGracefulShutdown: {
            tracker.ledger.shortenWaitsForStop()
        }
    }

    private struct Checking: Service {
        let worker: Worker
        let id: WorkerID

        func run() async {
            let loop = CheckLoop(tracker: worker.tracker, worker: id)
            await withDiscardingTaskGroup { group in
                group.addTask { await loop.run { _ in isStopping() } }
                group.addTask { await worker.runMaintenance() }
                group.addTask { await worker.maintainSummaries(beside: loop) }
                group.addTask {
                    await worker.workOff("renew outdated entitlements") { try await $0.customers.renewEntitlements() }
                }
                group.addTask {
                    await worker.workOff("deliver what a catalog released") { try await $0.deliveries.release() }
                }
                group.addTask { await worker.keepTryingSecrets() }
                group.addTask { await worker.runVerification(as: id) }
                group.addTask { await worker.tracker.keepFeed() }
                group.addTask { await worker.keepWebhooks() }
            }
            await worker.sequenceFeed()
            await worker.tracker.attempt("say that it stopped") {
                try await worker.tracker.ledger.claims.heartbeat(id, stopped: true)
            }
            worker.tracker.logger.info("worker stopped", metadata: ["worker": "\(id.number)"])
        }
    }

    /// Registers the worker as soon as the database answers; nil when shutdown comes first.
    private func announced() async -> WorkerID? {
        while !isStopping() {
            let worker = await tracker.attempt("start") {
                try await tracker.ledger.operations.requireMigrated()
                await tracker.checkFeedPlace()
                return try await tracker.startWorker()
            }
            if let worker { return worker }
            await rest(seconds: 2)
        }
        return nil
    }

    /// Does the periodic jobs: the feed, ends of outage allowances, incidents, old notifications, room for next month.
    private func runMaintenance() async {
        var rounds = 0
        while !isStopping() {
            if rounds % 20 == 0 { await tracker.checkFeedPlace() }
            if !isStopping() { await sequenceFeed() }
            if rounds % 20 == 0 {
                await keepUp("end exhausted allowances") { _ = try await tracker.ledger.settlements.endAllowances() }
                await keepUp("expire orders") { try await tracker.ledger.orders.expire() }
                await keepUp("compare the channels of all subscriptions") { try await tracker.hastenComparisons() }
                await keepUp("take up what is known by notification only") { try await seeToUnpolled() }
                await keepUp("watch for incidents") { try await tracker.ledger.operations.watchCanaries() }
                if !isStopping() { await tracker.seeStandings() }
            }
            if rounds % 7200 == 0 {
                await keepUp("make room for observations") {
                    try await tracker.ledger.operations.addObservationMonths()
                }
            }
            if rounds % 120 == 0 { await removeWhatIsOld() }
            rounds += 1
            await rest(seconds: 0.5)
        }
    }

    /// Takes up what is known by notification only where the app has got a server key; gives it up where that is gone.
    private func seeToUnpolled() async throws {
        let intake = tracker.ledger.intake
        while try await intake.giveUpKeyless(), !isStopping() {}
        while !isStopping(), try await intake.takeUpOwnerless() {}
        while !isStopping(), try await intake.takeUpUnpolled() {}
    }

    /// Tries the shared secrets that Apple refused. A stop does not wait for Apple's answer.
    private func keepTryingSecrets() async {
        while !isStopping() {
            await cancelWhenGracefulShutdown { await tracker.trySecrets() }
            await rest(seconds: 1)
        }
    }

    func removeWhatIsOld() async {
        await keepUp("remove old notifications") { try await tracker.ledger.intake.pruneNotifications() }
        await keepUp("forget claims that nothing states any more") {
            try await tracker.ledger.intake.forgetUnreadClaims()
        }
        await keepUp("forget old workers") { try await tracker.ledger.claims.forgetWorkers() }
    }

    /// Does one step of maintenance. A process that stops begins none: each would wait for a database that is away.
    private func keepUp(_ work: String, _ step: () async throws -> Void) async {
        guard !isStopping() else { return }
        await tracker.attempt(work, step)
    }

    /// Repeats a step of work that a catalog left, until shutdown. It rests as long as it works.
    private func workOff(_ work: String, _ step: @Sendable (SubscriptionLedger) async throws -> Bool) async {
        while !isStopping() {
            let start = ContinuousClock.now
            let isBehind = await tracker.attempt(work) { try await step(tracker.ledger) }
            await rest(seconds: isBehind == true ? (ContinuousClock.now - start).seconds : 5)
        }
    }

    private func sequenceFeed() async {
        await tracker.attempt("place events in the feed") { _ = try await tracker.ledger.feed.sequenceAll() }
        await tracker.attempt("place deliveries in the queue") { try await tracker.ledger.deliveries.place() }
    }
}

/// Returns whether this task should finish its work and stop.
package func isStopping() -> Bool { Task.isShuttingDownGracefully || Task.isCancelled }

/// The result of one run of `worker --once`.
package struct OnceReport: Sendable {
    package let asked: Int
    /// Receipts that were due when the run began but that Apple was not asked about.
    package let left: Int
    /// One sentence for each reason why receipts are left.
    package let why: [String]
    /// Receipts that Apple was asked about but gave no usable answer for; a worker asks about them again.
    package let unanswered: Int
    /// One sentence for each of the first unanswered receipts.
    package let unansweredBecause: [String]
}

extension Worker {
    /// Checks the receipts that are due at its start. Begins nothing after `maxSeconds` or a signal. Throws like `run`.
    package func runOnce(maxSeconds: Int?) async throws -> OnceReport {
        let ledger = tracker.ledger
        try await ledger.operations.requireMigrated()
        try await ledger.operations.addObservationMonths()
        await tracker.checkFeedPlace()
        let worker = try await tracker.startWorker()
        try await seeToUnpolled()
        await tracker.trySecrets()
        let (begin, loggedSince) = (try await ledger.now(), ContinuousClock.now)
        let tally = OnceTally()
        let asking = AskingOnce(
            tracker: tracker, worker: worker, dueBy: begin,
            end: maxSeconds.map { ContinuousClock.now.advanced(by: .seconds($0)) }, tally: tally)
        do {
            try await withHeartbeat(as: worker, while: asking)
        } catch {
            await tracker.attempt("record the stop") { try await ledger.claims.heartbeat(worker, stopped: true) }
            throw error
        }
        try await ledger.settlements.endAllowances()
        while try await ledger.orders.expire(), !isStopping() {}
        while try await ledger.customers.renewEntitlements(), !isStopping() {}
        while try await ledger.deliveries.release(), !isStopping() {}
        try await ledger.operations.watchCanaries()
        await tracker.trySecrets()
        await tracker.seeStandings()
        try await ledger.feed.sequenceAll()
        try await ledger.deliveries.place()
        await tracker.writeTally()
        await removeWhatIsOld()
        try await ledger.claims.heartbeat(worker, stopped: true)
        tracker.logChecks(since: loggedSince)
        let overdue = try await ledger.claims.overdue(by: begin, leaseSeconds: tracker.options.leaseSeconds)
        return await tally.report(overdue: overdue)
    }
}

private struct AskingOnce: Service {
    let tracker: Tracker
    let worker: WorkerID
    let dueBy: Instant
    /// The instant after which nothing new begins.
    let end: ContinuousClock.Instant?
    let tally: OnceTally

    func run() async {
        var loop = CheckLoop(tracker: tracker, worker: worker)
        loop.dueBy = dueBy
        loop.report = { await tally.add($0) }
        await loop.run { idle in
            if isStopping() || end.map({ ContinuousClock.now >= $0 }) ?? false { return true }
            guard idle else { return false }
            let isDone = await tracker.attempt("see what is due") {
                try await tracker.ledger.claims.due(limit: 1, by: dueBy).isEmpty
            }
            return isDone ?? true
        }
    }
}

private actor OnceTally {
    private static let sentencesMax = 5

    private var settled = 0
    private var unasked: [ReceiptID: String] = [:]
    private var unanswered: [ReceiptID: String] = [:]

    func add(_ batch: SettledBatch) {
        settled += batch.receipts
        unasked.merge(batch.unasked) { _, newer in newer }
        for (receipt, reason) in batch.unanswered { unanswered[receipt] = reason }
    }

    /// Returns the result of the run, including the due receipts that are still to be claimed.
    func report(overdue: (receipts: Int, why: [String])) -> OnceReport {
        let causes = Dictionary(grouping: unasked.values, by: \.self).map { "\($1.count) left: \($0)" }
        let sentences = unanswered.sorted { $0.key.number < $1.key.number }.prefix(Self.sentencesMax)
        return OnceReport(
            asked: settled - unasked.count, left: overdue.receipts + unasked.count,
            why: overdue.why + causes.sorted().prefix(Self.sentencesMax), unanswered: unanswered.count,
            unansweredBecause: sentences.map { "receipt \($0.key): \($0.value)" })
    }
}

/// A worker's heartbeat, which also checks whether it still fits the schema, and takes over from those who fell silent.
struct Heartbeat: Service {
    /// The time between two heartbeats, in seconds.
    static let restSeconds = 5.0
    private static let work = "give a sign of life"

    let tracker: Tracker
    let worker: WorkerID

    /// Sends heartbeats until shutdown; throws `LedgerError` `mismatch` when only later programs fit the schema.
    func run() async throws {
        var last: ContinuousClock.Instant?
        while !isStopping() {
            do {
                try await tracker.ledger.claims.heartbeat(worker)
                tracker.conditions.clear(.work(Self.work))
                // After a silence of the database every process looks gone, until it has sent a heartbeat again.
                let wasSilent = last.map { .now - $0 > .seconds(2 * Self.restSeconds) } ?? true
                last = .now
                if !wasSilent {
                    await tracker.attempt("take over from processes that are gone") {
                        try await tracker.ledger.claims.freeLeases()
                    }
                }
            } catch let error as LedgerError where error.kind == .mismatch {
                tracker.logger.error("stopping, after what is under way is finished: \(error)")
                throw error
            } catch {
                tracker.failed(to: Self.work, error)
            }
            await rest(seconds: Self.restSeconds)
        }
    }
}

/// The heartbeat of a process that checks single receipts on request, from its first check on.
package struct CheckerHeartbeat: Service {
    let tracker: Tracker

    package init(_ tracker: Tracker) { self.tracker = tracker }

    package func run() async {
        await tracker.identity.beginHeartbeats()
        while !isStopping() {
            if let worker = await tracker.identity.known {
                await tracker.attempt("give a sign of life") { try await tracker.ledger.claims.heartbeat(worker) }
            }
            await rest(seconds: Heartbeat.restSeconds)
        }
    }
}

/// A service that logs what this process checked, once a minute, and problems that are over.
package struct MinuteLog: Service {
    /// The interval at which it looks for problems that are over, in seconds.
    static let lookSeconds = 5.0
    /// The time that one line sums up, in seconds.
    static let summarySeconds = 60

    private let tracker: Tracker

    package init(_ tracker: Tracker) { self.tracker = tracker }

    /// Works until graceful shutdown, and logs the remaining counts last.
    package func run() async {
        var begin = ContinuousClock.now
        while !isStopping() {
            await rest(seconds: Self.lookSeconds)
            tracker.conditions.look()
            guard ContinuousClock.now - begin >= .seconds(Self.summarySeconds) else { continue }
            tracker.logChecks(since: begin)
            begin = ContinuousClock.now
        }
        tracker.logChecks(since: begin)
    }
}

extension Tracker {
    /// Logs one line for the checks since the last line; none where there were none.
    func logChecks(since begin: ContinuousClock.Instant) {
        let counts = counting.take()
        guard counts != CheckCounts() else { return }
        let seconds = Int((ContinuousClock.now - begin).seconds.rounded())
        logger.info("checked", metadata: counts.metadata.merging(["seconds": "\(seconds)"]) { $1 })
    }
}
