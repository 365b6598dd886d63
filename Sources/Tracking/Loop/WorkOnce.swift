import Ledger
import ServiceLifecycle
import Subscriptions

/// What one run of `worker --once` came to.
package struct OnceReport: Sendable {
    /// Receipts Apple was asked about.
    package let asked: Int
    /// Receipts that were due when the run began and Apple was not asked about.
    package let left: Int
    /// One sentence for each cause of what is left.
    package let why: [String]
    /// Receipts Apple was asked about and gave no usable answer for; they are asked about again.
    package let unanswered: Int
    /// One sentence for each of the first of them.
    package let unansweredBecause: [String]
}

extension Worker {
    /// Checks what was due when it began, then returns; begins nothing new after `maxSeconds` or a signal.
    ///
    /// Throws `LedgerError` `mismatch`, after what is claimed is finished, when the schema was changed meanwhile so that only
    /// later programs work with it.
    package func runOnce(maxSeconds: Int?) async throws -> OnceReport {
        let ledger = tracker.ledger
        try await ledger.requireMigrated()
        try await ledger.addObservationMonths()
        await tracker.tendFeed()
        let worker = try await tracker.startWorker()
        let (begin, loggedSince) = (try await ledger.now(), ContinuousClock.now)
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
        await tracker.seeStandings()
        try await ledger.sequenceFeed()
        await tracker.writeTally()
        await removeWhatIsOld()
        try await ledger.beat(worker, stopped: true)
        tracker.logChecks(since: loggedSince)
        let overdue = try await ledger.overdue(by: begin, leaseSeconds: tracker.options.leaseSeconds)
        return await tally.report(overdue: overdue)
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
    /// Sentences of a kind that are said, at most.
    private static let sentencesMax = 5

    private var settled = 0
    private var unasked: [ReceiptID: String] = [:]
    private var unanswered: [ReceiptID: String] = [:]

    func add(_ batch: CheckedBatch) {
        settled += batch.receipts
        unasked.merge(batch.unasked) { _, newer in newer }
        for (receipt, reason) in batch.unanswered { unanswered[receipt] = reason }
    }

    /// What the run came to, with what was due and is still to be claimed.
    func report(overdue: (receipts: Int, why: [String])) -> OnceReport {
        let causes = Dictionary(grouping: unasked.values, by: \.self).map { "\($1.count) left: \($0)" }
        let sentences = unanswered.sorted { $0.key.number < $1.key.number }.prefix(Self.sentencesMax)
        return OnceReport(
            asked: settled - unasked.count, left: overdue.receipts + unasked.count,
            why: overdue.why + causes.sorted().prefix(Self.sentencesMax), unanswered: unanswered.count,
            unansweredBecause: sentences.map { "receipt \($0.key): \($0.value)" })
    }
}
