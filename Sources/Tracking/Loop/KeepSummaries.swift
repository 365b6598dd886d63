extension Worker {
    /// How long the summaries rest when they are up to date, and while they are behind, in seconds.
    private static let upToDateRestSeconds = 10.0
    private static let behindRestSeconds = 0.2
    /// After how many steps everything is looked through for what was written without an event: ten minutes.
    private static let stepsToLookThrough = 60

    /// Keeps what the overview shows: the summaries of the feed and the count of Apple's answers.
    func keepSummaries() async {
        var isBehind = true
        var steps = 0
        while !isStopping() {
            await tracker.writeTally()
            let step = await tracker.attempt("keep the summaries") {
                try await tracker.ledger.summarise(
                    isFirstRound: isBehind, findsWritten: !isBehind && steps % Self.stepsToLookThrough == 0)
            }
            steps += 1
            isBehind = step.flatMap(\.self)?.isBehind ?? false
            await rest(seconds: isBehind ? Self.behindRestSeconds : Self.upToDateRestSeconds)
        }
        await tracker.writeTally()
    }
}
