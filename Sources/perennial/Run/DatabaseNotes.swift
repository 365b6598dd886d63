import Logging
import Postgres
import Synchronization
import Tracking

/// A log of a database's loss and return, one line each, however many connections notice.
final class DatabaseNotes: Sendable {
    private let condition: Condition
    private let logger: Logger
    private let isBrief: Bool
    private let conditions: ConditionMonitor
    /// The purposes, reads or transactions, whose connections are lost now.
    private let lost = Mutex<Set<DatabaseNote.Purpose>>([])

    /// Creates notes for `logger`; with `isBrief` only at its debug level.
    init(_ condition: Condition, logger: Logger, isBrief: Bool) {
        self.condition = condition
        self.logger = logger
        self.isBrief = isBrief
        conditions = ConditionMonitor(logger: logger)
    }

    /// Records a note from the database. The database is back when it is back for every purpose that lost it.
    func take(_ note: DatabaseNote) {
        logger.debug("\(note)")
        guard !isBrief else { return }
        lost.withLock { lost in
            switch note {
            case .lost(let purpose, let reason):
                lost.insert(purpose)
                conditions.raise(condition, by: reason)
            case .found(let purpose):
                lost.remove(purpose)
                if lost.isEmpty { conditions.clear(condition) }
            case .detail: break
            }
        }
    }
}
