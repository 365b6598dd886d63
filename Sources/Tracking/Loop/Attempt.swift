import Ledger
import Logging

extension Tracker {
    /// Runs a job that may fail; returns nil when it failed. The log has one line when failures begin and one when they
    /// end.
    ///
    /// `what` names the job, always with the same words. With `tries` above 1 a temporary failure, such as a database
    /// restart, is retried after 0.5 s, doubling.
    @discardableResult
    func attempt<Result>(_ what: String, tries: Int = 1, _ body: () async throws -> Result) async -> Result? {
        for attempt in 1... {
            do {
                let result = try await body()
                conditions.clear(.work(what))
                return result
            } catch {
                // A process that stops does not wait for a database that is away.
                let isLost = isStopping() && error.storageFailure?.isLoss == true
                guard attempt < tries, error.storageFailure?.mayPass ?? false, !isLost else {
                    failed(to: what, error)
                    return nil
                }
                logger.debug("could not \(what): \(error)")
                await rest(seconds: 0.5 * Double(1 << min(attempt - 1, 6)))
            }
        }
        return nil
    }

    /// Records that a job failed. The failure is logged once, unless its cause is logged.
    func failed(to work: String, _ error: any Error) {
        logger.debug("could not \(work): \(error)")
        if !error.isLoggedElsewhere { conditions.raise(.work(work), by: "\(error)") }
    }
}

extension Error {
    /// Whether the log has a line for the cause already: the database's connections log their loss, and this process
    /// logs its stop.
    package var isLoggedElsewhere: Bool {
        guard let failure = storageFailure else { return self is CancellationError }
        return failure.isLoss || failure.isStop
    }
}
