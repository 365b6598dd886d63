import Ledger

extension Tracker {
    /// Does something that may fail; nil when it failed. The log has a line when that begins and one when it is over.
    ///
    /// `what` names the job, always alike. With `tries` above 1 what may pass, such as a database that restarts, is waited
    /// out: 0.5 s, doubling.
    @discardableResult
    func attempt<Result>(_ what: String, tries: Int = 1, _ body: () async throws -> Result) async -> Result? {
        for attempt in 1... {
            do {
                let result = try await body()
                troubles.well(.work(what))
                return result
            } catch {
                guard attempt < tries, (error as? StorageError)?.mayPass ?? false else {
                    failed(to: what, error)
                    return nil
                }
                logger.debug("could not \(what): \(error)")
                await rest(seconds: 0.5 * Double(1 << min(attempt - 1, 6)))
            }
        }
        return nil
    }

    /// A job failed: logged once, unless its cause is.
    func failed(to work: String, _ error: any Error) {
        logger.debug("could not \(work): \(error)")
        if !error.isLoggedElsewhere { troubles.troubled(.work(work), by: "\(error)") }
    }
}

extension StorageError {
    /// Whether the same may succeed later; a settlement may be sent again even after a commit whose outcome is unknown.
    fileprivate var mayPass: Bool {
        switch disposition {
        case .retry: true
        case .reject: false
        case .alarm: kind == .commitUnknown
        }
    }
}

extension Error {
    /// Whether the log has a line for the cause: the database's connections write one when it goes, and this process does
    /// when it stops.
    var isLoggedElsewhere: Bool {
        guard let error = self as? StorageError else { return self is CancellationError }
        return switch error.kind {
        case .cannotConnect, .connectionLost, .closed, .cancelled: true
        case .server, .commitUnknown, .timedOut, .queueFull, .decoding: false
        }
    }
}
