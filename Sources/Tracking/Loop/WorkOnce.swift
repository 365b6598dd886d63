import Ledger
import ServiceLifecycle
import Subscriptions

/// What one run of `worker --once` came to.
public struct OnceReport: Sendable {
    /// Receipts Apple was asked about.
    public let asked: Int
    /// Receipts that were due when the run began and are still to be asked about.
    public let left: Int
    /// One sentence for each cause of what is left.
    public let why: [String]
}

extension Worker {
    /// Checks what was due when it began, then returns; begins nothing new after `maxSeconds` or a signal.
    ///
    /// Throws `LedgerError` `mismatch`, after what is claimed is finished, when the schema was changed meanwhile so that only
    /// later programs work with it.
    public func runOnce(maxSeconds: Int?) async throws -> OnceReport {
        let ledger = tracker.ledger
        try await ledger.requireMigrated()
        try await ledger.addObservationMonths()
        let worker = try await ledger.startWorker(host: ProcessIdentity.host, process: ProcessIdentity.number)
        let begin = try await ledger.now()
        let tally = OnceTally()
        let asking = AskingOnce(
            tracker: tracker, worker: worker, dueBy: begin,
            end: maxSeconds.map { ContinuousClock.now.advanced(by: .seconds($0)) }, tally: tally)
        do {
            try await breathing(as: worker, while: asking)
        } catch {
            await tracker.attempt("say that it stopped") { try await ledger.beat(worker, stopped: true) }
            throw error
        }
        try await tracker.endHolds()
        try await ledger.watchCanaries()
        try await ledger.sequenceFeed()
        await tracker.writeTally()
        await removeWhatIsOld()
        try await ledger.beat(worker, stopped: true)
        let overdue = try await ledger.overdue(by: begin, leaseSeconds: tracker.options.leaseSeconds)
        let troubles = await tally.troubles
        return OnceReport(
            asked: await tally.asked, left: overdue.receipts + troubles.count,
            why: overdue.why + Set(troubles).sorted().prefix(5))
    }
}

/// Asks about what was due by an instant, and ends.
private struct AskingOnce: Service {
    let tracker: Tracker
    let worker: WorkerID
    let dueBy: Instant
    /// When nothing new is begun any more.
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
                try await tracker.ledger.due(limit: 1, by: dueBy).isEmpty
            }
            return isDone ?? true
        }
    }
}

/// Adds up what a run did.
private actor OnceTally {
    private(set) var asked = 0
    private(set) var troubles: [String] = []

    func add(_ batch: CheckedBatch) {
        asked += batch.receipts
        troubles += batch.troubles
    }
}
