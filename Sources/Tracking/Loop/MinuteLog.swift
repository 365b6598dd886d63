import ServiceLifecycle

/// Writes to the log once a minute what this process checked, and what is over by then. It is silent while nothing happens.
package struct MinuteLog: Service {
    /// How often it looks whether a trouble is over, in seconds.
    static let lookSeconds = 5.0
    /// What one line sums up, in seconds.
    static let summarySeconds = 60

    private let tracker: Tracker

    /// The log of what `tracker` does.
    package init(_ tracker: Tracker) {
        self.tracker = tracker
    }

    /// Works until graceful shutdown; what was counted until then is written last.
    package func run() async {
        var begin = ContinuousClock.now
        while !isStopping() {
            await rest(seconds: Self.lookSeconds)
            tracker.troubles.look()
            guard ContinuousClock.now - begin >= .seconds(Self.summarySeconds) else { continue }
            tracker.logChecks(since: begin)
            begin = ContinuousClock.now
        }
        tracker.logChecks(since: begin)
    }
}

extension Tracker {
    /// One line for what was checked since the last one; none where nothing was.
    func logChecks(since begin: ContinuousClock.Instant) {
        let counts = counting.take()
        guard counts != CheckCounts() else { return }
        let seconds = Int((ContinuousClock.now - begin).seconds.rounded())
        logger.info("checked", metadata: counts.metadata.merging(["seconds": "\(seconds)"]) { $1 })
    }
}
