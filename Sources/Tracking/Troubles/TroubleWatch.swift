import Logging
import Synchronization

/// The problems of a process, logged as they begin and end.
package final class TroubleWatch: Sendable {
    private let book = Mutex(TroubleBook())
    private let logger: Logger
    private let now: @Sendable () -> ContinuousClock.Instant

    /// Creates a watch that writes to `logger`.
    package init(
        logger: Logger, now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        self.logger = logger
        self.now = now
    }

    /// Records a problem.
    package func troubled(_ concern: Concern, by reason: String) {
        write { book, now in [book.troubled(concern, by: reason, at: now)] }
    }

    /// Records that all is well.
    package func well(_ concern: Concern) {
        write { book, now in [book.well(concern, at: now)] }
    }

    /// Records that all is well for several concerns, which costs nothing while there is no problem.
    func well(_ concerns: some Sequence<Concern>) {
        write { book, now in book.isEmpty ? [] : concerns.map { book.well($0, at: now) } }
    }

    /// Records a problem with its reason, or that all is well where `reason` is nil.
    func see(_ concern: Concern, _ reason: String?) {
        if let reason { troubled(concern, by: reason) } else { well(concern) }
    }

    /// Ends the problems where all has been well for long enough; to be called every few seconds.
    func look() {
        write { book, now in book.endings(at: now) }
    }

    /// Returns whether a problem has begun and not ended.
    func stands(_ concern: Concern) -> Bool { book.withLock { $0.stands(concern) } }

    /// Logs under the lock, so that an end never comes before its start.
    private func write(_ change: (inout TroubleBook, ContinuousClock.Instant) -> [TroubleLine?]) {
        book.withLock { book in
            for line in change(&book, now()).compactMap(\.self) {
                logger.log(level: line.level, "\(line.message)", metadata: line.metadata)
            }
        }
    }
}
