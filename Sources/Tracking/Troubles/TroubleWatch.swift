import Logging
import Synchronization

/// The troubles of a process, logged as they begin and end.
package final class TroubleWatch: Sendable {
    private let book = Mutex(TroubleBook())
    private let logger: Logger
    private let now: @Sendable () -> ContinuousClock.Instant

    /// A watch that writes to `logger`.
    package init(
        logger: Logger, now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        self.logger = logger
        self.now = now
    }

    /// Says that something is the matter.
    package func troubled(_ concern: Concern, by reason: String) {
        write { book, now in [book.troubled(concern, by: reason, at: now)] }
    }

    /// Says that all is well.
    package func well(_ concern: Concern) {
        write { book, now in [book.well(concern, at: now)] }
    }

    /// The same of several, which costs nothing while nothing is the matter.
    func well(_ concerns: some Sequence<Concern>) {
        write { book, now in book.isEmpty ? [] : concerns.map { book.well($0, at: now) } }
    }

    /// Says one or the other.
    func see(_ concern: Concern, _ reason: String?) {
        if let reason { troubled(concern, by: reason) } else { well(concern) }
    }

    /// Ends what has been well for long enough; to be called every few seconds.
    func look() {
        write { book, now in book.endings(at: now) }
    }

    /// Whether a trouble has begun and not ended.
    func stands(_ concern: Concern) -> Bool { book.withLock { $0.stands(concern) } }

    /// Under the lock, so that an end never comes before its begin.
    private func write(_ change: (inout TroubleBook, ContinuousClock.Instant) -> [TroubleLine?]) {
        book.withLock { book in
            for line in change(&book, now()).compactMap(\.self) {
                logger.log(level: line.level, "\(line.message)", metadata: line.metadata)
            }
        }
    }
}
