import Logging
import ServiceLifecycle

/// A service that logs what this process checked, once a minute, and problems that are over. Silent while nothing
/// happens.
package struct MinuteLog: Service {
    /// The interval at which it looks for problems that are over, in seconds.
    static let lookSeconds = 5.0
    /// The time that one line sums up, in seconds.
    static let summarySeconds = 60

    private let tracker: Tracker

    /// Creates the log of the checks of `tracker`.
    package init(_ tracker: Tracker) {
        self.tracker = tracker
    }

    /// Works until graceful shutdown, and logs the remaining counts last.
    package func run() async {
        var begin = ContinuousClock.now
        while !isStopping() {
            await rest(seconds: Self.lookSeconds)
            tracker.conditions.look()
            guard ContinuousClock.now - begin >= .seconds(Self.summarySeconds) else { continue }
            tracker.logChecks(since: begin)
            begin = ContinuousClock.now
        }
        tracker.logChecks(since: begin)
    }
}

extension Tracker {
    /// Logs one line for the checks since the last line; none where there were none.
    func logChecks(since begin: ContinuousClock.Instant) {
        let counts = counting.take()
        guard counts != CheckCounts() else { return }
        let seconds = Int((ContinuousClock.now - begin).seconds.rounded())
        logger.info("checked", metadata: counts.metadata.merging(["seconds": "\(seconds)"]) { $1 })
    }
}
