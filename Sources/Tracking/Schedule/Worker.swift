import Ledger
import Logging
import ServiceLifecycle
import Subscriptions

/// The scheduler loop: claims what is due, checks it, settles it, and places events in the feed.
///
/// As many as you like may run, on as many machines as you like.
public struct Worker: Service {
    let tracker: Tracker
    /// Batches being asked about at the same time.
    static let overlappingBatches = 3
    /// Receipts claimed at once.
    static let batchReceiptsMax = 100
    /// Every how many batches the least urgent lane comes first, so that nothing starves.
    static let sweepFirstEvery = 10

    /// A worker on the given line.
    public init(_ tracker: Tracker) {
        self.tracker = tracker
    }

    /// Works until graceful shutdown; what is claimed then is finished first.
    public func run() async throws {
        let worker = await announced()
        guard let worker else { return }
        tracker.logger.info("worker started", metadata: ["worker": "\(worker.number)"])
        let pace = Pace()
        await withDiscardingTaskGroup { group in
            for loop in 0..<Self.overlappingBatches {
                group.addTask { await keepChecking(as: worker, loop: loop, pace: pace) }
            }
            group.addTask { await keepHouse(as: worker) }
        }
        await attempt("say that it stopped") { try await tracker.ledger.beat(worker, stopped: true) }
        tracker.logger.info("worker stopped", metadata: ["worker": "\(worker.number)"])
    }

    /// Announces the worker as soon as the database is there; nil when shutdown comes first.
    private func announced() async -> WorkerID? {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            do {
                try await tracker.ledger.requireMigrated()
                return try await tracker.ledger.startWorker(host: ProcessIdentity.host, process: ProcessIdentity.number)
            } catch {
                tracker.logger.warning("cannot start yet: \(error)")
                await rest(seconds: 2)
            }
        }
        return nil
    }

    private func keepChecking(as worker: WorkerID, loop: Int, pace: Pace) async {
        var batches = loop
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            batches += 1
            let batch = await attempt("check receipts") {
                try await tracker.checkDue(as: worker, sweepFirst: batches % Self.sweepFirstEvery == 0)
            }
            await pace.record(batch)
            await rest(seconds: await pace.restSeconds(after: batch))
        }
    }

    /// What only needs to happen now and then: signs of life, the feed, ends of outage allowances, room for next month.
    private func keepHouse(as worker: WorkerID) async {
        var rounds = 0
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            await attempt("place events in the feed") { _ = try await tracker.ledger.sequenceFeed() }
            if rounds % 20 == 0 {
                await attempt("give a sign of life") { try await tracker.ledger.beat(worker) }
                await attempt("end exhausted allowances") { _ = try await tracker.endHolds() }
            }
            if rounds % 7200 == 0 {
                await attempt("make room for observations") { try await tracker.ledger.addObservationMonths() }
            }
            rounds += 1
            await rest(seconds: 0.5)
        }
        await attempt("place events in the feed") { _ = try await tracker.ledger.sequenceFeed() }
    }

    /// Does something that may fail, and says so in the log; nil when it failed.
    @discardableResult
    private func attempt<Result>(_ what: String, _ body: () async throws -> Result) async -> Result? {
        do {
            return try await body()
        } catch {
            tracker.logger.warning("could not \(what): \(error)")
            return nil
        }
    }

    /// Waits, but not into a shutdown.
    private func rest(seconds: Double) async {
        guard seconds > 0 else { return }
        await cancelWhenGracefulShutdown {
            do { try await Task.sleep(for: .seconds(seconds)) } catch { return }
        }
    }
}

/// How fast the loops of one worker go: at once while there is work, slower while there is none or nobody answers.
actor Pace {
    private var breaker = Breaker()
    private var failures = 0

    /// Takes in how a batch went; nil when it failed on our side.
    func record(_ batch: CheckedBatch?) {
        guard let batch else {
            failures += 1
            return
        }
        failures = 0
        breaker.record(asked: batch.settled.count, troubled: batch.troubled)
    }

    /// Seconds to rest after a batch.
    func restSeconds(after batch: CheckedBatch?) -> Double {
        guard let batch else { return min(30, 0.5 * Double(1 << min(failures, 6))) }
        let idle = batch.settled.isEmpty ? 0.25 : 0
        return max(idle, breaker.pauseSeconds)
    }
}
