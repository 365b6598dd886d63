import Postgres
import SQL
import Subscriptions

extension SubscriptionDraft {
    /// Gives it to a customer, whatever the policy: a version of its own, with its event.
    mutating func give(to customer: CustomerID, named name: String, because cause: OwnershipCause) {
        guard let state, let change = ownership.give(to: customer, named: name, because: cause) else { return }
        note(change, of: state.timeline.span(at: state.asOf)?.productID ?? "")
    }

    /// Removes the owner: a version of its own, without an event.
    fileprivate mutating func release() {
        ownership.release()
        version += 1
    }
}

extension PurchaseDraft {
    /// Gives it to a customer, whatever the policy: a version of its own, with its event.
    mutating func give(to customer: CustomerID, named name: String, because cause: OwnershipCause) {
        guard state != nil, let change = ownership.give(to: customer, named: name, because: cause) else { return }
        note(change)
    }

    /// Removes the owner: a version of its own, without an event.
    fileprivate mutating func release() {
        ownership.release()
        version += 1
    }
}

extension SettlementRun {
    /// Gives the locked subscriptions and purchases to a customer: all of them, or only those that one of `owners`
    /// owns.
    mutating func give(
        from owners: Set<CustomerID>? = nil, to customer: CustomerID, named name: String, because cause: OwnershipCause
    ) {
        for key in subscriptions.keys where isOwned(subscriptions[key]?.ownership, by: owners) {
            subscriptions[key]?.give(to: customer, named: name, because: cause)
        }
        for key in purchases.keys where isOwned(purchases[key]?.ownership, by: owners) {
            purchases[key]?.give(to: customer, named: name, because: cause)
        }
    }

    /// Gives some of the locked subscriptions and purchases to a customer, by the keys of their rows.
    mutating func give(
        subscriptions chosen: Set<Int64>, purchases bought: Set<Int64>, to customer: CustomerID, named name: String,
        because cause: OwnershipCause
    ) {
        for (key, draft) in subscriptions where chosen.contains(draft.rowID) {
            subscriptions[key]?.give(to: customer, named: name, because: cause)
        }
        for (key, draft) in purchases where bought.contains(draft.rowID) {
            purchases[key]?.give(to: customer, named: name, because: cause)
        }
    }

    /// Removes the owner from the locked subscriptions and purchases that one of `owners` owns.
    mutating func release(from owners: Set<CustomerID>) {
        for key in subscriptions.keys where isOwned(subscriptions[key]?.ownership, by: owners) {
            subscriptions[key]?.release()
        }
        for key in purchases.keys where isOwned(purchases[key]?.ownership, by: owners) {
            purchases[key]?.release()
        }
    }

    /// The owners of what is locked, before any change.
    var owners: Set<CustomerID> {
        Set((subscriptions.values.map(\.ownership) + purchases.values.map(\.ownership)).compactMap(\.owner?.customer))
    }

    /// Returns the number of locked subscriptions and purchases that one of `owners` owns.
    func thingsOwned(by owners: Set<CustomerID>) -> Int {
        subscriptions.values.count { isOwned($0.ownership, by: owners) }
            + purchases.values.count { isOwned($0.ownership, by: owners) }
    }

    /// Writes the changes of owner, nothing else; returns their number.
    func writeHandOver(in transaction: Transaction) throws -> Int {
        let changed = subscriptions.values.filter(\.ownership.isChanged)
        let bought = purchases.values.filter(\.ownership.isChanged)
        guard !changed.isEmpty || !bought.isEmpty else { return 0 }
        try raiseVersions(of: changed, bought, in: transaction)
        try writeEvents(in: transaction)
        try writeOwnerships(in: transaction)
        try storeTurns(in: transaction)
        return changed.count + bought.count
    }

    /// Writes the versions of what changes its owner and nothing else.
    func raiseVersions(
        of changed: [SubscriptionDraft], _ bought: [PurchaseDraft], in transaction: Transaction
    ) throws {
        guard !changed.isEmpty || !bought.isEmpty else { return }
        try transaction.query(
            Queries.raiseVersions,
            [
                .int8s(changed.map(\.rowID)), .int8s(changed.map(\.version)),
                .timestamptzs(changed.map(\.recordedMicroseconds)),
                .int8s(bought.map(\.rowID)), .int8s(bought.map(\.version)),
                .timestamptzs(bought.map(\.recordedMicroseconds)),
            ])
    }

    private func isOwned(_ draft: OwnershipDraft?, by owners: Set<CustomerID>?) -> Bool {
        guard let owners else { return true }
        return draft?.owner.map { owners.contains($0.customer) } ?? false
    }
}
