import Postgres
import SQL
package import Subscriptions

/// Reduces signed texts to their claims, without what must go. Each function returns nil where the rest would say something else.
package struct SignedReducer: Sendable {
    let notification: @Sendable (KeptNotification) -> String?
    let answer: @Sendable (KeptAnswer) -> [UInt8]?

    /// Creates a reducer of stored notifications and answers.
    package init(
        notification: @escaping @Sendable (KeptNotification) -> String?,
        answer: @escaping @Sendable (KeptAnswer) -> [UInt8]?
    ) {
        self.notification = notification
        self.answer = answer
    }
}

/// The result of one batch of reductions, after its commit.
package struct ReducedBatch: Sendable {
    /// Notifications or answers whose texts were reduced.
    package var reduced = 0
    /// Those that stay as they are, because the rest would say something else.
    package var untouched = 0
    /// The bytes of what was reduced, before and after.
    package var bytes: (before: Int, after: Int) = (0, 0)
    /// The number after which to continue; nil after the last batch.
    package var next: Int64?

    /// Creates an empty result.
    package init() {}

    /// Adds the result of another batch.
    package mutating func add(_ other: ReducedBatch) {
        reduced += other.reduced
        untouched += other.untouched
        bytes.before += other.bytes.before
        bytes.after += other.bytes.after
    }
}

extension LedgerOperations {
    /// The most notifications or answers that one transaction reduces.
    private static let reducedMax: Int32 = 200

    /// Reduces the texts of notifications that came before `cutoff`: a rebuild finds the same afterwards.
    ///
    /// - Parameter after: The notification after which to continue; 0 to begin.
    package func reduceNotifications(
        after: Int64, before cutoff: Instant, by reducer: SignedReducer
    ) async throws -> ReducedBatch {
        try await database.transaction { transaction in
            let rows = try transaction.query(
                Queries.findReducibleNotifications, [.int8(after), .instant(cutoff), .int4(Self.reducedMax)])
            var batch = ReducedBatch()
            var (ids, claims): ([Int64], [String]) = ([], [])
            for row in rows {
                let kept = try KeptNotification(row: row)
                batch.next = kept.id
                guard let left = reducer.notification(kept) else {
                    batch.untouched += 1
                    continue
                }
                batch.bytes.before += kept.texts?.count ?? 0
                batch.bytes.after += left.utf8.count
                ids.append(kept.id)
                claims.append(left)
            }
            batch.reduced = ids.count
            try transaction.query(Queries.writeReducedNotifications, [.int8s(ids), .texts(claims)])
            return batch
        }
    }

    /// Reduces the texts in answers of the Server API that were recorded before `cutoff`.
    ///
    /// - Parameter after: The observation after which to continue; 0 to begin.
    package func reduceAnswers(
        after: Int64, before cutoff: Instant, by reducer: SignedReducer
    ) async throws -> ReducedBatch {
        try await database.transaction { transaction in
            let rows = try transaction.query(
                Queries.findReducibleAnswers, [.int8(after), .instant(cutoff), .int4(Self.reducedMax)])
            var batch = ReducedBatch()
            var (ids, bodies): ([Int64], [[UInt8]]) = ([], [])
            for row in rows {
                let kept = KeptAnswer(
                    observation: Observation(
                        id: try row.int8("observation_id"), receiptID: ReceiptID(try row.int8("receipt_id")),
                        firstAsOf: try row.instant("first_as_of"), lastAsOf: try row.instant("last_as_of")),
                    bundleID: BundleID(try row.text("bundle_id")), environment: try row.word("environment"),
                    body: try row.bytea("body"))
                batch.next = kept.observation.id
                guard let left = reducer.answer(kept) else {
                    batch.untouched += 1
                    continue
                }
                batch.bytes.before += kept.body.count
                batch.bytes.after += left.count
                ids.append(kept.observation.id)
                bodies.append(left)
            }
            batch.reduced = ids.count
            try transaction.query(Queries.writeReducedAnswers, [.int8s(ids), .byteas(bodies), .instant(cutoff)])
            return batch
        }
    }
}
