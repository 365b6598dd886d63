import Postgres
import SQL
package import Subscriptions

/// The result of one batch of a prune, after its commit.
package struct PruneBatch: Sendable {
    /// Receipts with old enough answers.
    package var receipts = 0
    /// Answers that were removed.
    package var dropped = 0
    /// Old answers that are kept, because something stored depends on them.
    package var needed = 0
    /// Old answers that are kept, because their receipt cannot be rebuilt in full anyway.
    package var untouched = 0
    /// The receipt after which to continue; nil after the last batch.
    package var next: Int64?

    /// Creates an empty result.
    package init() {}

    /// Adds the result of another batch.
    package mutating func add(_ other: PruneBatch) {
        receipts += other.receipts
        dropped += other.dropped
        needed += other.needed
        untouched += other.untouched
    }
}

extension LedgerOperations {
    /// Removes answers recorded before `cutoff` that nothing depends on. It folds the contents of their receipt once
    /// with them and once without, and removes them only when both results are the same to the last clock. A later
    /// rebuild therefore still gives everything that it gives now.
    ///
    /// It always keeps the newest answer of each receipt, the observations of silence, and everything about receipts
    /// that cannot be rebuilt in full. It may run beside workers, because an answer that comes meanwhile only adds
    /// facts.
    ///
    /// - Parameters:
    ///   - receipt: The receipt after which to continue; 0 to begin.
    ///   - limit: The most receipts in the batch.
    package func prune(
        after receipt: Int64, before cutoff: Instant, limit: Int = 20, reading read: EvidenceReader
    ) async throws -> PruneBatch {
        let apps = Dictionary(try await ledger.apps.all().map { ($0.id, $0) }) { first, _ in first }
        return try await database.transaction { transaction in
            let run = PruneRun(apps: apps, cutoff: cutoff, read: read)
            return try run.receipts(after: receipt, limit: limit, in: transaction)
        }
    }

    /// Frees the disk space of months before `cutoff` without stored answers, each month in its own transaction;
    /// returns how many. A month that is being read is left for the next time, because workers would wait behind this
    /// statement.
    package func dropEmptyMonths(before cutoff: Instant) async throws -> Int {
        var months = 0
        while try await write(Queries.dropEmptyMonths, [.instant(cutoff)]).first?.int4("months") == 1 { months += 1 }
        return months
    }

    /// Removes audit rows written before `cutoff`, and support calls sent before it; returns how many.
    package func pruneAudit(before cutoff: Instant) async throws -> Int {
        let calls = try await remove(Queries.deleteSupportCalls, before: cutoff)
        return try await remove(Queries.deleteAudit, before: cutoff) + calls
    }

    private func remove(_ file: SQLFile, before cutoff: Instant) async throws -> Int {
        var removed = 0
        while true {
            let rows = try await database.transaction { transaction in
                try transaction.execute(Statement(file), [.instant(cutoff), .int4(Int32(auditRowsMax))])
            }
            removed += rows
            guard rows == auditRowsMax else { return removed }
        }
    }
}

/// The most rows to remove in one transaction.
private let auditRowsMax = 10_000
