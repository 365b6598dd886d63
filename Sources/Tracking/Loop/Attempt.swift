import Ledger

extension Tracker {
    /// Does something that may fail, and says so in the log; nil when it failed.
    ///
    /// With `tries` above 1 what may pass, such as a database that restarts, is waited out: 0.5 s, doubling.
    @discardableResult
    func attempt<Result>(_ what: String, tries: Int = 1, _ body: () async throws -> Result) async -> Result? {
        for attempt in 1... {
            do {
                return try await body()
            } catch {
                logger.warning("could not \(what): \(error)")
                guard attempt < tries, (error as? StorageError)?.mayPass ?? false else { return nil }
                await rest(seconds: 0.5 * Double(1 << min(attempt - 1, 6)))
            }
        }
        return nil
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
