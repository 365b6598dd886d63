import Ledger

extension Worker {
    /// Keeps what the overview shows: the summaries of the feed and the count of Apple's answers.
    func keepSummaries() async {
        var pace = SummaryPace()
        while !isStopping() {
            await tracker.writeTally()
            pace.begin()
            let begin = ContinuousClock.now
            let step = await tracker.attempt("keep the summaries") {
                try await tracker.ledger.summarise(isFirstRound: pace.isBehind, findsWritten: pace.findsWritten)
            }
            pace.record(step.flatMap(\.self), workSeconds: (ContinuousClock.now - begin).seconds)
            await rest(seconds: pace.restSeconds)
        }
        await tracker.writeTally()
    }
}

/// How large the steps of the summaries are, and how long they rest.
///
/// Most workers start beside summaries that are up to date: only the first step tells, so it is a small one.
struct SummaryPace: Sendable {
    /// How long the summaries rest when they are up to date, in seconds.
    static let upToDateRestSeconds = 10.0
    /// While they are behind they rest as long as they worked, and at least so long, in seconds: a database that has a
    /// million subscriptions to sum up has other things to do as well.
    static let behindRestSecondsMin = 0.2
    /// After how many steps everything is looked through for what was written without an event: ten minutes.
    static let stepsToLookThrough = 60

    /// Whether more is waiting than a small step takes in.
    private(set) var isBehind = false
    /// Seconds to rest before the next step.
    private(set) var restSeconds = upToDateRestSeconds
    private var steps = 0

    /// Whether this step looks everything through.
    var findsWritten: Bool { !isBehind && steps % Self.stepsToLookThrough == 0 }

    /// Counts a step that begins.
    mutating func begin() { steps += 1 }

    /// Takes in how a step went; nil when it failed, or another worker does it.
    mutating func record(_ step: SummaryStep?, workSeconds: Double) {
        isBehind = step?.isBehind ?? false
        restSeconds = isBehind ? max(Self.behindRestSecondsMin, workSeconds) : Self.upToDateRestSeconds
    }
}
