import Foundation
import Postgres

/// No session waited for a lock.
struct NotBlocked: Error {}

extension Transaction {
    /// Waits until a session waits for a lock of this transaction.
    func waitUntilAnotherIsBlocked() throws {
        let blocked = Statement.test(
            """
            SELECT count(*) AS blocked FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'
            """)
        let end = ContinuousClock.now + .seconds(20)
        while try query(blocked).first?.int8("blocked") == 0 {
            guard ContinuousClock.now < end else { throw NotBlocked() }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }
}
