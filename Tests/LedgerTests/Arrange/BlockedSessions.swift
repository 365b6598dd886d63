import Foundation
import Postgres

/// No session waited for a lock of the transaction.
struct NotBlocked: Error {}

extension Transaction {
    /// Waits until a session waits for a lock of this transaction. `pg_locks` is read anew each time, unlike
    /// `pg_stat_activity`, which stays the same for a whole transaction.
    func waitUntilAnotherIsBlocked() throws {
        let blocked = Statement.test(
            """
            SELECT count(*) AS blocked FROM pg_locks
            WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))
            """)
        let end = ContinuousClock.now + .seconds(20)
        while try query(blocked).first?.int8("blocked") == 0 {
            guard ContinuousClock.now < end else { throw NotBlocked() }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }
}
