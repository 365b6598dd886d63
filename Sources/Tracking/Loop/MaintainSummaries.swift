import Ledger

extension Worker {
    /// Maintains the data of the overview: the summaries of the feed and the count of Apple's answers.
    func maintainSummaries() async {
        var pace = SummaryPacing()
        while !isStopping() {
            await tracker.writeTally()
            pace.begin()
            let begin = ContinuousClock.now
            let step = await tracker.attempt("keep the summaries") {
                try await tracker.ledger.operations.summarise(
                    isFirstRound: pace.isBehind, findsWritten: pace.findsWritten)
            }
            pace.record(step.flatMap(\.self), workSeconds: (ContinuousClock.now - begin).seconds)
            await rest(seconds: pace.restSeconds)
        }
        await tracker.writeTally()
    }
}

/// The size of the summary steps and the rest between them.
///
/// The summaries are usually up to date when a worker starts. Only the first step shows it, so that step is small.
struct SummaryPacing: Sendable {
    /// The rest between two steps when the summaries are up to date, in seconds.
    static let upToDateRestSeconds = 10.0
    /// The shortest rest while the summaries are behind, in seconds; a step that took longer is followed by a rest of
    /// the same length. A database with a million subscriptions to sum up has other work as well.
    static let behindRestSecondsMin = 0.2
    /// The number of steps, ten minutes' worth, after which a step searches everything for changes written without an
    /// event.
    static let stepsToLookThrough = 60

    /// Whether more is waiting than a small step can process.
    private(set) var isBehind = false
    /// Seconds to rest before the next step.
    private(set) var restSeconds = upToDateRestSeconds
    private var steps = 0

    /// Whether this step searches everything.
    var findsWritten: Bool { !isBehind && steps % Self.stepsToLookThrough == 0 }

    /// Counts a step as begun.
    mutating func begin() { steps += 1 }

    /// Records the result of a step; nil when it failed, or another worker does it.
    mutating func record(_ step: SummaryStep?, workSeconds: Double) {
        isBehind = step?.isBehind ?? false
        restSeconds = isBehind ? max(Self.behindRestSecondsMin, workSeconds) : Self.upToDateRestSeconds
    }
}
