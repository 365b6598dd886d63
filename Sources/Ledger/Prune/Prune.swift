import Postgres
import SQL
import Subscriptions

/// What one batch of a prune came to, after it was committed.
package struct PruneBatch: Sendable {
    /// Receipts that had answers old enough.
    package var receipts = 0
    /// Answers that are kept no more.
    package var dropped = 0
    /// Old answers that are kept, because something stored rests on them.
    package var needed = 0
    /// Old answers that are kept, because their receipt cannot be rebuilt in full anyway.
    package var untouched = 0
    /// The receipt to go on behind; nil when this was the last batch.
    package var next: Int64?

    /// Nothing so far.
    package init() {}

    /// Adds what another batch came to.
    package mutating func add(_ other: PruneBatch) {
        receipts += other.receipts
        dropped += other.dropped
        needed += other.needed
        untouched += other.untouched
    }
}

extension SubscriptionLedger {
    /// Removes answers recorded before `cutoff` that nothing rests on: everything their receipt holds is folded once with
    /// them and once without, and only when both are the same to the last clock do they go. So a rebuild later still tells
    /// all that it tells now.
    ///
    /// Always kept are the newest answer of each receipt, what silence ended, and everything about receipts that cannot be
    /// rebuilt in full. It may run beside workers, for an answer that comes meanwhile only adds.
    ///
    /// - Parameters:
    ///   - receipt: Where to go on; 0 to begin.
    ///   - limit: The most receipts in the batch.
    ///   - speedup: As the workers have it.
    package func prune(
        after receipt: Int64, before cutoff: Instant, limit: Int = 20, speedup: Int, reading read: @escaping ReadAnswer,
        by reconcile: @escaping Reconcile
    ) async throws -> PruneBatch {
        let apps = Dictionary(try await apps().map { ($0.id, $0) }) { first, _ in first }
        return try await database.transaction { transaction in
            let run = PruneRun(apps: apps, cutoff: cutoff, speedup: speedup, read: read, reconcile: reconcile)
            return try run.receipts(after: receipt, limit: limit, in: transaction)
        }
    }

    /// Gives back the disk of the months before `cutoff` of which nothing is kept, each in a transaction of its own; how many
    /// they were. What somebody reads at the moment is left for the next time, for workers would wait behind us.
    package func dropEmptyMonths(before cutoff: Instant) async throws -> Int {
        var months = 0
        while try await write(Queries.dropEmptyMonths, [.instant(cutoff)]).first?.int4("months") == 1 { months += 1 }
        return months
    }

    /// Removes what was written to the audit before `cutoff`; how many rows went.
    package func pruneAudit(before cutoff: Instant) async throws -> Int {
        var removed = 0
        while true {
            let rows = try await database.transaction { transaction in
                try transaction.execute(
                    Statement(Queries.deleteAudit), [.instant(cutoff), .int4(Int32(auditRowsMax))])
            }
            removed += rows
            guard rows == auditRowsMax else { return removed }
        }
    }
}

/// Rows of the audit that are removed in one transaction, at most.
private let auditRowsMax = 10_000
