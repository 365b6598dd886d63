import Ledger
import ServiceLifecycle

/// Says now and then that a worker is alive, and learns at the same time whether it still fits the schema.
struct SignsOfLife: Service {
    /// How long it is silent in between, in seconds.
    static let restSeconds = 5.0
    private static let work = "give a sign of life"

    let tracker: Tracker
    let worker: WorkerID

    /// Goes on until shutdown; throws `LedgerError` `mismatch` when the schema is for later programs only.
    func run() async throws {
        while !isStopping() {
            do {
                try await tracker.ledger.beat(worker)
                tracker.troubles.well(.work(Self.work))
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
