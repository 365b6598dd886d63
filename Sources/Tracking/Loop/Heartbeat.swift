import Ledger
import Logging
import ServiceLifecycle

/// A worker's heartbeat, which also checks whether the worker still fits the schema.
struct Heartbeat: Service {
    /// The time between two heartbeats, in seconds.
    static let restSeconds = 5.0
    private static let work = "give a sign of life"

    let tracker: Tracker
    let worker: WorkerID

    /// Sends heartbeats until shutdown; throws `LedgerError` `mismatch` when only later programs fit the schema.
    func run() async throws {
        while !isStopping() {
            do {
                try await tracker.ledger.claims.heartbeat(worker)
                tracker.conditions.clear(.work(Self.work))
            } catch let error as LedgerError where error.kind == .mismatch {
                tracker.logger.error("stopping, after what is under way is finished: \(error)")
                throw error
            } catch {
                tracker.failed(to: Self.work, error)
            }
            await rest(seconds: Self.restSeconds)
        }
    }
}
