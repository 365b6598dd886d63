extension Worker {
    /// How long the summaries rest when they are up to date, in seconds.
    private static let upToDateRestSeconds = 10.0
    /// While they are behind they rest as long as they worked, and at least so long, in seconds: a database that has a
    /// million subscriptions to sum up has other things to do as well.
    private static let behindRestSecondsMin = 0.2
    /// After how many steps everything is looked through for what was written without an event: ten minutes.
    private static let stepsToLookThrough = 60

    /// Keeps what the overview shows: the summaries of the feed and the count of Apple's answers.
    func keepSummaries() async {
        // Most workers start beside summaries that are up to date: only the first step tells, so it is a small one.
        var isBehind = false
        var steps = 0
        while !isStopping() {
            await tracker.writeTally()
            steps += 1
            let begin = ContinuousClock.now
            let step = await tracker.attempt("keep the summaries") {
                try await tracker.ledger.summarise(
                    isFirstRound: isBehind, findsWritten: !isBehind && steps % Self.stepsToLookThrough == 0)
            }
            isBehind = step.flatMap(\.self)?.isBehind ?? false
            let workSeconds = (ContinuousClock.now - begin).seconds
            await rest(seconds: isBehind ? max(Self.behindRestSecondsMin, workSeconds) : Self.upToDateRestSeconds)
        }
        await tracker.writeTally()
    }
}
