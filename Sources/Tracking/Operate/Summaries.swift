import Postgres
import SQL

/// The result of one step of the summaries.
package struct SummaryStep: Sendable, Hashable {
    /// Subscriptions whose shares were computed again.
    package let subscriptions: Int
    /// Whether more may be waiting: the feed goes on, or the first round through all subscriptions is not over.
    package let isBehind: Bool
}

extension LedgerOperations {
    /// The most events that one step reads.
    static let summaryEventsMax = 2_000
    /// The most subscriptions that one step computes again, in the first round and in later ones.
    static let summaryFirstRoundMax: Int32 = 2_000
    static let summaryRoundMax: Int32 = 200
    /// The most subscriptions that one step computes again because they were written without an event.
    static let summaryWrittenMax: Int32 = 2_000

    /// Takes the next events of the feed into each day's summaries and into the rows for reports, and computes a few
    /// subscriptions again in a round through all, which finds changes without an event. Returns nil while another
    /// process does it.
    ///
    /// For every day that a subscription touches, it removes what the subscription added before and adds what its
    /// history says now. A late event therefore rewrites the past, and the same step twice changes nothing. Settlements
    /// never run it. `findsWritten` searches all subscriptions for those written since without an event: a second a million.
    @discardableResult
    package func summarise(isFirstRound: Bool = false, findsWritten: Bool = false) async throws -> SummaryStep? {
        let roundMax = isFirstRound ? Self.summaryFirstRoundMax : Self.summaryRoundMax
        let writtenMax = findsWritten ? Self.summaryWrittenMax : 0
        return try await database.transaction { transaction in
            guard try transaction.query(Queries.lockSummaries).first?.bool("locked") == true else { return nil }
            let found = try transaction.query(
                Queries.findUnsummarised, .int4(Int32(Self.summaryEventsMax)), .int4(roundMax), .int4(writtenMax))
            guard let row = found.first else { return nil }
            let subscriptions = try row.int8s("subscriptions")
            if !subscriptions.isEmpty {
                // The mark comes first: an upload that reports a price meanwhile waits for it, and removes it again.
                let steps = [
                    Queries.markSummarised, Queries.forgetSummaryRows, Queries.addSummaryRows, Queries.forgetShares,
                    Queries.addShares,
                ]
                for step in steps { try transaction.query(step, [.int8s(subscriptions)]) }
            }
            try transaction.query(
                Queries.moveSummaries, .int8(try row.int8("position")), .int8(try row.int8("round_at")),
                .int8(try row.int8("rounds")), .text(try row.text("price_mark")))
            return SummaryStep(
                subscriptions: subscriptions.count,
                isBehind: try row.int8("rounds") == 0 || row.bool("is_behind"))
        }
    }
}

extension Worker {
    /// Maintains the data of the overview: the summaries of the feed and the count of Apple's answers.
    func maintainSummaries(beside checks: CheckLoop) async {
        var pace = SummaryPacing()
        while !isStopping() {
            await tracker.writeTally()
            pace.begin()
            let begin = ContinuousClock.now
            let step = await tracker.attempt("keep the summaries") {
                try await tracker.ledger.operations.summarise(
                    isFirstRound: pace.isBehind, findsWritten: pace.findsWritten)
            }
            pace.record(
                step.flatMap(\.self), workSeconds: (ContinuousClock.now - begin).seconds,
                besideFullChecks: await checks.isFull)
            await rest(seconds: pace.restSeconds)
        }
        await tracker.writeTally()
    }
}

/// The size of the summary steps and the rest between them. The first is small: usually it finds nothing left to do.
struct SummaryPacing: Sendable {
    /// The rest between two steps when the summaries are up to date, in seconds.
    static let upToDateRestSeconds = 10.0
    /// The shortest rest while the summaries are behind, in seconds; a step that took longer is followed by a rest of
    /// the same length, because the database has other work as well.
    static let behindRestSecondsMin = 0.2
    /// The rest while the summaries are behind and the worker checks as many receipts as it can, as a multiple of the
    /// step: receipts that are due come first, and reports read the history of what is not summed up.
    static let restBesideFullChecks = 9.0
    /// The number of steps, ten minutes' worth, after which one searches everything for changes written without an event.
    static let stepsToLookThrough = 60

    /// Whether more is waiting than a small step can process.
    private(set) var isBehind = false
    private(set) var restSeconds = upToDateRestSeconds
    private var steps = 0

    var findsWritten: Bool { !isBehind && steps % Self.stepsToLookThrough == 0 }

    mutating func begin() { steps += 1 }

    /// Records the result of a step; nil when it failed, or another worker does it.
    mutating func record(_ step: SummaryStep?, workSeconds: Double, besideFullChecks: Bool = false) {
        isBehind = step?.isBehind ?? false
        let rest = besideFullChecks ? workSeconds * Self.restBesideFullChecks : workSeconds
        restSeconds = isBehind ? max(Self.behindRestSecondsMin, rest) : Self.upToDateRestSeconds
    }
}
