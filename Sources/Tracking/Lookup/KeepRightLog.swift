import Ledger

extension Tracker {
    /// How often a server sees to the log of what changed, in seconds: after a crash of the database it begins anew, and after
    /// a restore the feed does.
    private static let rightLogRestSeconds = 60.0

    /// Sees to the log of what changed of customers' rights, and to the feed's id, until shutdown.
    func keepRightLog() async {
        while !isStopping() {
            await tendRightLog()
            await tendFeed()
            await rest(seconds: Self.rightLogRestSeconds)
        }
    }

    /// Begins the log where there is none, and forgets what no server asks about any more.
    func tendRightLog() async {
        await attempt("tend the log of changed rights") { try await ledger.tendRightLog() }
    }
}
