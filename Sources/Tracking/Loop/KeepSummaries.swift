extension Worker {
    /// How long the summaries rest when they are up to date, and while they are behind, in seconds.
    private static let upToDateRestSeconds = 10.0
    private static let behindRestSeconds = 0.2

    /// Keeps what the overview shows: the summaries of the feed and the count of Apple's answers.
    func keepSummaries() async {
        var isBehind = true
        while !isStopping() {
            await tracker.writeTally()
            let step = await tracker.attempt("keep the summaries") {
                try await tracker.ledger.summarise(isFirstRound: isBehind)
            }
            isBehind = step.flatMap(\.self)?.isBehind ?? false
            await rest(seconds: isBehind ? Self.behindRestSeconds : Self.upToDateRestSeconds)
        }
        await tracker.writeTally()
    }
}
