package import Logging
import Synchronization

/// The problems of a process, logged as they begin and end.
package final class ConditionMonitor: Sendable {
    private let book = Mutex(ConditionLog())
    private let logger: Logger
    private let now: @Sendable () -> ContinuousClock.Instant

    /// Creates a monitor that writes to `logger`; only tests replace the clock, with `now`.
    package init(
        logger: Logger, now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        self.logger = logger
        self.now = now
    }

    /// Records that a problem is observed now; logs it when it is new.
    package func raise(_ condition: Condition, by reason: String) {
        write { book, now in [book.raise(condition, by: reason, at: now)] }
    }

    /// Records that a problem is gone now. Its end is logged once it has been gone for `calmSeconds`.
    package func clear(_ condition: Condition) {
        write { book, now in [book.clear(condition, at: now)] }
    }

    /// Records that several problems are gone; takes no time while there is no problem.
    func clear(_ conditions: some Sequence<Condition>) {
        write { book, now in book.isEmpty ? [] : conditions.map { book.clear($0, at: now) } }
    }

    /// Records a problem with its reason, or that it is gone where `reason` is nil.
    func see(_ condition: Condition, _ reason: String?) {
        if let reason { raise(condition, by: reason) } else { clear(condition) }
    }

    /// Ends the problems that have been gone for long enough. `MinuteLog` calls it every few seconds.
    func look() {
        write { book, now in book.endings(at: now) }
    }

    /// Logs under the lock, so that an end never comes before its start.
    private func write(_ change: (inout ConditionLog, ContinuousClock.Instant) -> [ConditionLine?]) {
        book.withLock { book in
            for line in change(&book, now()).compactMap(\.self) {
                logger.log(level: line.level, "\(line.message)", metadata: line.metadata)
            }
        }
    }
}
