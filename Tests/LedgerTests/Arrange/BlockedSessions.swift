import Foundation
import Postgres

/// No session waited for a lock of the transaction.
struct NotBlocked: Error {}

extension Transaction {
    /// Waits until sessions wait for a lock of this transaction, or of one that does. `pg_locks` is read anew each time,
    /// unlike `pg_stat_activity`, which stays the same for a whole transaction.
    func waitUntilAnotherIsBlocked(sessions: Int64 = 1) throws {
        let blocked = Statement.test(
            """
            WITH waiting AS MATERIALIZED (
                SELECT DISTINCT l.pid, pg_blocking_pids(l.pid) AS blockers FROM pg_locks l WHERE NOT l.granted
            ), first AS (
                SELECT w.pid FROM waiting w WHERE pg_backend_pid() = ANY(w.blockers)
            )
            SELECT count(*) AS blocked FROM waiting w
            WHERE w.pid IN (SELECT f.pid FROM first f) OR w.blockers && ARRAY(SELECT f.pid FROM first f)
            """)
        let end = ContinuousClock.now + .seconds(20)
        while try query(blocked).first?.int8("blocked") ?? 0 < sessions {
            guard ContinuousClock.now < end else { throw NotBlocked() }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }
}
