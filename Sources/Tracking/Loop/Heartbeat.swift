import Ledger
import Logging
import ServiceLifecycle

/// A worker's heartbeat, which also checks whether the worker still fits the schema, and takes over from those who fell
/// silent.
struct Heartbeat: Service {
    /// The time between two heartbeats, in seconds.
    static let restSeconds = 5.0
    private static let work = "give a sign of life"

    let tracker: Tracker
    let worker: WorkerID

    /// Sends heartbeats until shutdown; throws `LedgerError` `mismatch` when only later programs fit the schema.
    func run() async throws {
        var last: ContinuousClock.Instant?
        while !isStopping() {
            do {
                try await tracker.ledger.claims.heartbeat(worker)
                tracker.conditions.clear(.work(Self.work))
                // After a silence of the database every process looks gone, until it has sent a heartbeat again.
                let wasSilent = last.map { .now - $0 > .seconds(2 * Self.restSeconds) } ?? true
                last = .now
                if !wasSilent {
                    await tracker.attempt("take over from processes that are gone") {
                        try await tracker.ledger.claims.freeLeases()
                    }
                }
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

/// The heartbeat of a process that checks single receipts on request, from its first check on.
package struct CheckerHeartbeat: Service {
    let tracker: Tracker

    /// Creates the heartbeat of a process.
    package init(_ tracker: Tracker) { self.tracker = tracker }

    /// Sends heartbeats until shutdown.
    package func run() async {
        await tracker.identity.beginHeartbeats()
        while !isStopping() {
            if let worker = await tracker.identity.known {
                await tracker.attempt("give a sign of life") { try await tracker.ledger.claims.heartbeat(worker) }
            }
            await rest(seconds: Heartbeat.restSeconds)
        }
    }
}
