import Postgres
import SQL
import Subscriptions

extension SubscriptionLedger {
    /// Ends access where the outage allowance ran out: the only change without an answer from Apple.
    ///
    /// Settles that no news came until then, and stores this as an observation of outcome `none`. Returns how many
    /// allowances ended.
    @discardableResult
    package func endAllowances(limit: Int = 100) async throws -> Int {
        let ids = try await query(Queries.findEndedAllowances, [.int4(Int32(clamping: limit))])
            .map { try $0.int8("subscription_id") }
        guard !ids.isEmpty else { return 0 }
        let apps = Dictionary(try await apps().map { ($0.id, $0) }) { first, _ in first }
        return try await changingPollers { transaction in
            let pollers = try LockedPollers(subscriptions: ids, in: transaction)
            let rows = try transaction.query(Queries.lockEndedAllowances, [.int8s(ids)])
            var run = try SettlementRun(locked: rows, pollers: pollers, apps: apps, in: transaction)
            let ended = run.endAllowances()
            guard !ended.isEmpty else { return 0 }
            try run.planPolling()
            try run.writeDrafts(in: transaction)
            try run.writePolling(in: transaction)
            try run.keepSilence(of: ended, in: transaction)
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

    /// Stores that no news came, as observations of the receipts that would have been asked about.
    fileprivate func keepSilence(of drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        let polled = drafts.filter { $0.polling.storedPoller != nil }
        let ids = try transaction.query(Queries.reserveIds, [.int4(Int32(clamping: polled.count)), .int4(0)])
        try transaction.query(
            Queries.insertObservations,
            [
                .int8s(try ids.map { try $0.int8("id") }), .int8s(polled.map(\.polling.storedPoller?.number)),
                .int4s(polled.map(\.key.appID)), .int8s(polled.map { _ in 0 }), .texts(polled.map { _ in "none" }),
                .int4s(polled.map { _ in nil }),
                .texts(polled.map(\.key.silenceSentence)),
                .texts(polled.map(\.key.environment.rawValue)), .instants(polled.map { $0.state?.asOf }),
                .byteas(polled.map { _ in [] }), .byteas(polled.map { _ in nil }),
                .timestamptzs(polled.map(\.recordedMicroseconds)),
            ])
    }
}

extension SubscriptionRowKey {
    /// The reason in the observation that no news of the subscription came; a rebuild recognizes the observation by it.
    var silenceSentence: String { "The outage allowance of \(id) ran out." }
}
