import Postgres
import SQL
import Subscriptions

extension SubscriptionLedger {
    /// How many subscriptions and purchases a rebuild would look at.
    package func rebuildable(_ scope: RebuildScope) async throws -> Int64 {
        try await query(Queries.countRebuildable, [.text(scope.app?.text), .text(scope.customer)])
            .first?.int8("things") ?? 0
    }

    /// Folds the stored observations of the next subscriptions or purchases again, by the present rules, and compares.
    ///
    /// With `correcting`, what differs is written as a new version, under the locks of a settlement: what is known from then
    /// on is corrected, what was known before stays on record, and `ledger.correction` keeps both. No event is made: nothing
    /// happened at Apple. What the observations do not tell in full is never touched. It may run beside workers, and
    /// again: what is right stays as it is.
    ///
    /// - Parameters:
    ///   - place: Where to go on.
    ///   - limit: The most things in the batch, all of which stay locked meanwhile.
    ///   - speedup: As the workers have it.
    package func rebuild(
        from place: RebuildPlace, limit: Int = 20, _ scope: RebuildScope, correcting: Bool, speedup: Int,
        reading read: @escaping ReadAnswer, by reconcile: @escaping Reconcile
    ) async throws -> RebuildBatch {
        let apps = Dictionary(try await apps().map { ($0.id, $0) }) { first, _ in first }
        return try await changingPollers { transaction in
            let run = RebuildRun(
                apps: apps, scope: scope, limit: limit, correcting: correcting, speedup: speedup, read: read,
                reconcile: reconcile)
            switch place {
            case .subscriptions(let after): return try run.subscriptions(after: after, in: transaction)
            case .purchases(let after): return try run.purchases(after: after, in: transaction)
            }
        }
    }
}
