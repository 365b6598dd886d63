import Ledger
import Logging
import ServiceLifecycle
import Subscriptions

/// The scheduler: it checks due receipts and places events in the feed.
///
/// Any number of workers may run, on any number of machines.
package struct Worker: Service {
    /// The most receipts that one process has claimed and not settled. While some are being asked about, others wait for
    /// a connection or for their settlement, so that no stage waits for another.
    static let claimsMax = 1_280
    /// The most calls at a time, which is the most connections to Apple. Many more would be answered in one burst, after
    /// which the connections rest until the burst is settled.
    package static let callsMax = 320

    let tracker: Tracker

    /// Creates a worker of the given tracker.
    package init(_ tracker: Tracker) {
        self.tracker = tracker
    }

    /// Works until graceful shutdown, and finishes the claimed receipts first.
    ///
    /// Throws `LedgerError` `mismatch`, after finishing the claimed receipts, when the schema has changed meanwhile and
    /// only later programs work with it.
    package func run() async throws {
        guard let worker = await announced() else { return }
        tracker.logger.info("worker started", metadata: ["worker": "\(worker.number)"])
        try await withHeartbeat(as: worker, while: Checking(worker: self, id: worker))
    }

    /// Sends heartbeats while `work` runs. From a graceful stop on, its steps wait only briefly for a database that is
    /// away: what they leave undone, another worker takes over within one lease. When a heartbeat shows that this program is out of date, `work` stops
    /// gracefully and the error is thrown.
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
            tracker.ledger.beginLeaving()
        }
    }

    /// All of a worker's jobs except the heartbeat.
    private struct Checking: Service {
        let worker: Worker
        let id: WorkerID

        func run() async {
            let loop = CheckLoop(tracker: worker.tracker, worker: id)
            await withDiscardingTaskGroup { group in
                group.addTask { await loop.run { _ in isStopping() } }
                group.addTask { await worker.runMaintenance() }
                group.addTask { await worker.maintainSummaries() }
                group.addTask {
                    await worker.catchUp("renew outdated entitlements") { try await $0.customers.renewEntitlements() }
                }
                group.addTask {
                    await worker.catchUp("deliver what a catalog released") { try await $0.deliveries.release() }
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
            await sequenceFeed()
            if rounds % 20 == 0 {
                await tracker.attempt("end exhausted allowances") {
                    _ = try await tracker.ledger.settlements.endAllowances()
                }
                await tracker.attempt("expire orders") { try await tracker.ledger.orders.expire() }
                await tracker.attempt("compare the channels of all subscriptions") {
                    try await tracker.hastenComparisons()
                }
                await tracker.attempt("take up what is known by notification only") {
                    while try await tracker.ledger.intake.takeUpUnpolled(), !isStopping() {}
                }
                await tracker.attempt("watch for incidents") { try await tracker.ledger.operations.watchCanaries() }
                await tracker.seeStandings()
            }
            if rounds % 7200 == 0 {
                await tracker.attempt("make room for observations") {
                    try await tracker.ledger.operations.addObservationMonths()
                }
            }
            if rounds % 120 == 0 {
                await removeWhatIsOld()
            }
            rounds += 1
            await rest(seconds: 0.5)
        }
    }

    /// Tries the shared secrets that Apple refused. A stop does not wait for Apple's answer.
    private func keepTryingSecrets() async {
        while !isStopping() {
            await cancelWhenGracefulShutdown { await tracker.trySecrets() }
            await rest(seconds: 1)
        }
    }

    /// Removes a bounded number of old notifications and workers.
    func removeWhatIsOld() async {
        await tracker.attempt("remove old notifications") { try await tracker.ledger.intake.pruneNotifications() }
        await tracker.attempt("forget claims that nothing states any more") {
            try await tracker.ledger.intake.forgetUnreadClaims()
        }
        await tracker.attempt("forget old workers") { try await tracker.ledger.claims.forgetWorkers() }
    }

    /// Repeats a step of work that a catalog left, until shutdown. It rests as long as it works.
    private func catchUp(
        _ work: String, _ step: @Sendable (SubscriptionLedger) async throws -> Bool
    ) async {
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
