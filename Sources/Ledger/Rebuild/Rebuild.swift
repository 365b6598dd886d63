import Postgres
import SQL
import Subscriptions

extension LedgerOperations {
    /// Returns how many subscriptions, purchases and customers a rebuild would examine.
    package func rebuildable(_ scope: RebuildScope) async throws -> Int64 {
        try await query(Queries.countRebuildable, [.text(scope.app?.text), .text(scope.customer)])
            .first?.int8("things") ?? 0
    }

    /// Folds the stored observations of the next subscriptions or purchases again, by the present rules, and compares
    /// the result with the stored state.
    ///
    /// With `correcting`, writes each differing one as a new version, under the locks of a settlement. This corrects
    /// what is known from then on; what was known before stays on record, and `ledger.correction` keeps both. It makes
    /// no event, because nothing happened at Apple. It never touches a subscription or purchase whose observations are
    /// incomplete. It may run beside workers, and more than once: correct state stays as it is.
    ///
    /// - Parameters:
    ///   - place: Where to continue.
    ///   - limit: The most subscriptions or purchases in the batch; all stay locked meanwhile.
    package func rebuild(
        from place: RebuildPlace, limit: Int = 20, _ scope: RebuildScope, correcting: Bool,
        reading read: EvidenceReader
    ) async throws -> RebuildBatch {
        let apps = Dictionary(try await ledger.apps.all().map { ($0.id, $0) }) { first, _ in first }
        return try await ledger.changingPollers { transaction in
            let run = RebuildRun(
                apps: apps, scope: scope, limit: limit, correcting: correcting, read: read)
            switch place {
            case .subscriptions(let after): return try run.subscriptions(after: after, in: transaction)
            case .purchases(let after): return try run.purchases(after: after, in: transaction)
            case .entitlements(let after): return try run.entitlements(after: after, in: transaction)
            }
        }
    }
}
