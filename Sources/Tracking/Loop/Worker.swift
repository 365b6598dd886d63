import Ledger
import Logging
import ServiceLifecycle
import Subscriptions

/// The scheduler: checks what is due, and places events in the feed.
///
/// As many as you like may run, on as many machines as you like.
package struct Worker: Service {
    /// Receipts that one process has claimed and not yet settled, at most: the connections to Apple that it may need.
    package static let callsMax = 640

    let tracker: Tracker

    /// A worker on the given line.
    package init(_ tracker: Tracker) {
        self.tracker = tracker
    }

    /// Works until graceful shutdown; what is claimed then is finished first.
    ///
    /// Throws `LedgerError` `mismatch`, after what is claimed is finished, when the schema was changed meanwhile so that only
    /// later programs work with it.
    package func run() async throws {
        guard let worker = await announced() else { return }
        tracker.logger.info("worker started", metadata: ["worker": "\(worker.number)"])
        try await breathing(as: worker, while: Checking(worker: self, id: worker))
    }

    /// Gives signs of life while `work` runs. Whoever gives them learns that this program is out of date; the work then stops
    /// as if asked to, and the reason is thrown.
    func breathing(as worker: WorkerID, while work: any Service) async throws {
        let configuration = ServiceGroupConfiguration(
            services: [
                .init(service: work, successTerminationBehavior: .gracefullyShutdownGroup),
                .init(
                    service: SignsOfLife(tracker: tracker, worker: worker),
                    successTerminationBehavior: .gracefullyShutdownGroup,
                    failureTerminationBehavior: .gracefullyShutdownGroup),
            ], logger: tracker.logger)
        try await ServiceGroup(configuration: configuration).run()
    }

    /// All that a worker does but breathe.
    private struct Checking: Service {
        let worker: Worker
        let id: WorkerID

        func run() async {
            let loop = CheckLoop(tracker: worker.tracker, worker: id)
            await withDiscardingTaskGroup { group in
                group.addTask { await loop.run { _ in isStopping() } }
                group.addTask { await worker.keepHouse() }
                group.addTask { await worker.keepSummaries() }
                group.addTask { await worker.keepVerified(as: id) }
                group.addTask { await worker.tracker.keepFeed() }
            }
            await worker.placeEvents()
            await worker.tracker.attempt("say that it stopped") {
                try await worker.tracker.ledger.beat(id, stopped: true)
            }
            worker.tracker.logger.info("worker stopped", metadata: ["worker": "\(id.number)"])
        }
    }

    /// Announces the worker as soon as the database is there; nil when shutdown comes first.
    private func announced() async -> WorkerID? {
        while !isStopping() {
            let worker = await tracker.attempt("start") {
                try await tracker.ledger.requireMigrated()
                await tracker.tendFeed()
                return try await tracker.startWorker()
            }
            if let worker { return worker }
            await rest(seconds: 2)
        }
        return nil
    }

    /// What only needs to happen now and then: the feed, ends of outage allowances, incidents, old notifications, room for
    /// next month.
    private func keepHouse() async {
        var rounds = 0
        while !isStopping() {
            if rounds % 20 == 0 { await tracker.tendFeed() }
            await placeEvents()
            if rounds % 20 == 0 {
                await tracker.attempt("end exhausted allowances") { _ = try await tracker.endHolds() }
                await tracker.attempt("watch for incidents") { try await tracker.ledger.watchCanaries() }
                await tracker.seeStandings()
            }
            if rounds % 7200 == 0 {
                await tracker.attempt("make room for observations") {
                    try await tracker.ledger.addObservationMonths()
                }
            }
            if rounds % 120 == 0 {
                await removeWhatIsOld()
            }
            rounds += 1
            await rest(seconds: 0.5)
        }
    }

    /// Notifications and workers of long ago, a bounded number of them, and changes that no server asks about any more.
    func removeWhatIsOld() async {
        await tracker.attempt("remove old notifications") { try await tracker.ledger.pruneNotifications() }
        await tracker.attempt("forget old workers") { try await tracker.ledger.forgetWorkers() }
        await tracker.tendRightLog()
    }

    private func placeEvents() async {
        await tracker.attempt("place events in the feed") { _ = try await tracker.ledger.placeEvents() }
    }
}

/// Whether this task shall finish what it is doing.
func isStopping() -> Bool { Task.isShuttingDownGracefully || Task.isCancelled }
