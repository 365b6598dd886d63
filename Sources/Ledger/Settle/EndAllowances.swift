import Postgres
import SQL
import Subscriptions

extension LedgerSettlements {
    /// Ends access where the outage allowance ran out: the only change without an answer from Apple.
    ///
    /// Settles that no news came until then, and stores this as an observation of outcome `none`. Returns how many
    /// allowances ended.
    @discardableResult
    package func endAllowances(limit: Int = 100) async throws -> Int {
        let ids = try await query(Queries.findEndedAllowances, [.int4(Int32(clamping: limit))])
            .map { try $0.int8("subscription_id") }
        guard !ids.isEmpty else { return 0 }
        let apps = Dictionary(try await ledger.apps.all().map { ($0.id, $0) }) { first, _ in first }
        return try await ledger.changingPollers { transaction in
            let pollers = try LockedPollers(subscriptions: ids, in: transaction)
            try pollers.foldClocks(in: transaction)
            let rows = try transaction.query(Queries.lockEndedAllowances, [.int8s(ids)])
            var run = try SettlementRun(locked: rows, pollers: pollers, apps: apps, in: transaction)
            let ended = run.endAllowances()
            guard !ended.isEmpty else { return 0 }
            try run.planPolling()
            let affected = try run.lockAffectedCustomers(in: transaction)
            try run.writeDrafts(in: transaction)
            try run.writePolling(in: transaction)
            try affected.store(in: transaction)
            try run.writeEndedAllowanceObservations(of: ended, in: transaction)
            return ended.count
        }
    }
}

extension SettlementRun {
    /// Folds the end of the allowance into each subscription whose outage allowance ran out.
    fileprivate mutating func endAllowances() -> [SubscriptionDraft] {
        let now = recordedAt
        return subscriptions.keys.sorted().compactMap { key in
            guard
                let held = subscriptions[key]?.storedSpans.first(where: { $0.allowedUntil.map { $0 <= now } ?? false }),
                let policy = policy(of: key.appID, key.environment)
            else { return nil }
            subscriptions[key]?.endAllowance(of: held, policy: policy)
            return subscriptions[key]
        }
    }

    /// Stores one observation of outcome `none` for each subscription, of the receipt that polls it: no news came.
    func writeEndedAllowanceObservations(of drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        guard !drafts.isEmpty else { return }
        let polled = drafts.compactMap { draft in draft.polling.storedPoller.map { (draft: draft, receipt: $0) } }
        let ids = try transaction.query(Queries.reserveIds, [.int4(Int32(clamping: polled.count)), .int4(0)])
            .map { try $0.int8("id") }
        let rows = zip(ids, polled).map { id, entry in
            let draft = entry.draft
            return ObservationRow(
                id: id, receiptID: entry.receipt, appID: draft.key.appID, outcome: "none",
                reason: draft.key.endedAllowanceSentence, environment: draft.key.environment, asOf: draft.state?.asOf,
                recordedMicroseconds: draft.recordedMicroseconds)
        }
        try transaction.query(Queries.insertObservations, rows: rows)
    }
}

extension SubscriptionRowKey {
    /// The reason in the observation that no news of the subscription came; a rebuild recognizes the observation by it.
    var endedAllowanceSentence: String { "The outage allowance of \(id) ran out." }
}
