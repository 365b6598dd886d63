import Logging
import Postgres
import Synchronization
import Tracking

/// A log of a database's loss and return, one line each, however many connections notice.
final class DatabaseNotes: Sendable {
    private let concern: Concern
    private let logger: Logger
    private let isBrief: Bool
    private let troubles: TroubleWatch
    /// The purposes that have no connection.
    private let lost = Mutex<Set<DatabaseNote.Purpose>>([])

    /// Creates notes for `logger`; with `isBrief` only at its debug level.
    init(_ concern: Concern, logger: Logger, isBrief: Bool) {
        self.concern = concern
        self.logger = logger
        self.isBrief = isBrief
        troubles = TroubleWatch(logger: logger)
    }

    /// Records a note from the database. The database is back when it is back for every purpose that lost it.
    func take(_ note: DatabaseNote) {
        logger.debug("\(note)")
        guard !isBrief else { return }
        lost.withLock { lost in
            switch note {
            case .lost(let purpose, let reason):
                lost.insert(purpose)
                troubles.troubled(concern, by: reason)
            case .found(let purpose):
                lost.remove(purpose)
                if lost.isEmpty { troubles.well(concern) }
            case .detail: break
            }
        }
    }
}
