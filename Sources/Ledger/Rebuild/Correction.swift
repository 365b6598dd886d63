import Postgres
import SQL
import Subscriptions

/// The changes of a rebuild to one subscription or purchase, as rows of `ledger.correction`.
struct Correction {
    let subscription: (id: Int64, key: SubscriptionRowKey)?
    let purchaseID: Int64?
    let version: Int64
    let recordedMicroseconds: Int64
    let differences: [RebuildDifference]

    init(of draft: SubscriptionDraft, _ differences: [RebuildDifference]) {
        subscription = (draft.rowID, draft.key)
        purchaseID = nil
        version = draft.version + 1
        recordedMicroseconds = draft.recordedMicroseconds
        self.differences = differences
    }

    init(of draft: PurchaseDraft, _ differences: [RebuildDifference]) {
        subscription = nil
        purchaseID = draft.rowID
        version = draft.version + 1
        recordedMicroseconds = draft.recordedMicroseconds
        self.differences = differences
    }

    static func record(_ corrections: [Correction], in transaction: Transaction) throws {
        let rows = corrections.flatMap { correction in correction.differences.map { (correction, $0) } }
        try transaction.query(
            Queries.insertCorrections,
            [
                .int8s(rows.map(\.0.subscription?.id)), .int8s(rows.map(\.0.purchaseID)),
                .int8s(rows.map(\.0.version)), .texts(rows.map(\.1.fact)), .texts(rows.map(\.1.stored)),
                .texts(rows.map(\.1.rebuilt)), .timestamptzs(rows.map(\.0.recordedMicroseconds)),
            ])
    }
}

extension SubscriptionDraft {
    /// Changes it to the state that the observations give, as a separate version without events; its periods keep their
    /// keys.
    mutating func correct(to rebuilt: SubscriptionState, policy: Policy) {
        let facts = rebuilt.facts.keepingKeys(of: stored?.facts)
        replace(
            with: SubscriptionState(
                facts: facts, policy: policy, version: version + 1, retractions: rebuilt.retractions),
            policy: policy)
    }
}

extension SubscriptionFacts {
    /// Returns the same facts under the keys that the same periods have in `stored`.
    fileprivate func keepingKeys(of stored: SubscriptionFacts?) -> SubscriptionFacts {
        var free = stored?.periods ?? []
        var periods = periods.map { period in
            var period = period
            period.id = free.takeFirst {
                $0.webOrderLineItemID != nil && $0.webOrderLineItemID == period.webOrderLineItemID
            }
            return period
        }
        for index in periods.indices where periods[index].id == nil {
            let aliases = periods[index].transactionIDs
            periods[index].id = free.takeFirst { !$0.transactionIDs.isDisjoint(with: aliases) }
        }
        return SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: asOf, periods: periods, renewal: renewal)
    }
}

extension [Period] {
    /// Removes the first matching period and returns its key.
    fileprivate mutating func takeFirst(where fits: (Period) -> Bool) -> Int64? {
        firstIndex(where: fits).flatMap { remove(at: $0).id }
    }
}
