import Ledger

extension Tracker {
    /// How often a server maintains the log of changed entitlements and the feed's id, in seconds. The log starts again
    /// after a crash of the database, and the feed gets a new id after a restore.
    private static let rightLogRestSeconds = 60.0

    /// Maintains the log of changed entitlements and the feed's id until shutdown.
    package func maintainRightLog() async {
        while !isStopping() {
            await pruneRightLog()
            await checkFeedPlace()
            await rest(seconds: Self.rightLogRestSeconds)
        }
    }

    /// Starts the log where there is none, and deletes the entries that no server asks about any more.
    func pruneRightLog() async {
        await attempt("tend the log of changed rights") { try await ledger.customers.pruneRightLog() }
    }
}
