import Ledger
import ServiceLifecycle
import Subscriptions

/// The result of one run of `worker --once`.
package struct OnceReport: Sendable {
    /// Receipts Apple was asked about.
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
    /// Checks the receipts that are due at its start, then returns. Begins nothing new after `maxSeconds` or a signal.
    ///
    /// Throws `LedgerError` `mismatch`, after finishing the claimed receipts, when the schema has changed meanwhile and
    /// only later programs work with it.
    package func runOnce(maxSeconds: Int?) async throws -> OnceReport {
        let ledger = tracker.ledger
        try await ledger.operations.requireMigrated()
        try await ledger.operations.addObservationMonths()
        await tracker.checkFeedPlace()
        let worker = try await tracker.startWorker()
        while try await ledger.intake.takeUpUnpolled(), !isStopping() {}
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

/// A service that checks what was due by an instant, and ends.
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

/// The totals of a run.
private actor OnceTally {
    /// The most sentences of each kind.
    private static let sentencesMax = 5

    private var settled = 0
    private var unasked: [ReceiptID: String] = [:]
    private var unanswered: [ReceiptID: String] = [:]

    func add(_ batch: CheckedBatch) {
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
