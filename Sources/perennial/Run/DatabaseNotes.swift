import Logging
import Postgres
import Synchronization
import Tracking

/// Logs that a database goes and comes back, once each, however many connections notice.
final class DatabaseNotes: Sendable {
    private let concern: Concern
    private let logger: Logger
    private let isBrief: Bool
    private let troubles: TroubleWatch
    /// What there is no connection for.
    private let lost = Mutex<Set<DatabaseNote.Purpose>>([])

    /// Notes for `logger`; with `isBrief` for its debug level only.
    init(_ concern: Concern, logger: Logger, isBrief: Bool) {
        self.concern = concern
        self.logger = logger
        self.isBrief = isBrief
        troubles = TroubleWatch(logger: logger)
    }

    /// Takes a note of the database's. It is back when it is for all that it was away for.
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
