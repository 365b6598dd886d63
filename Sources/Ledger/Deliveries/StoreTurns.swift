import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Stores the deliveries that changed purchases and subscriptions need. It comes after their owners are written.
    func storeTurns(in transaction: Transaction) throws {
        let bought = purchases.values.filter(\.isChanged).map(\.rowID)
        let subscribed = subscriptions.values.filter(\.isChanged).map(\.rowID)
        guard !bought.isEmpty || !subscribed.isEmpty else { return }
        let turns = try transaction.query(Queries.storeTurns, [.int8s(bought), .int8s(subscribed)])
        guard try turns.first?.int8("turns") ?? 0 > 0 else { return }
        try transaction.query(Queries.advanceOrders, [.int8s(bought), .int8s(subscribed)])
    }

    /// Skips what is still due to another customer of purchases and subscriptions that a proof or an account token took, and
    /// makes it due to the new owner under an id of its own: the operator's service may be carrying out the first one now.
    func handOverDue(in transaction: Transaction) throws {
        let bought = purchases.values.filter(\.ownership.takesDue)
        let subscribed = subscriptions.values.filter(\.ownership.takesDue)
        guard !bought.isEmpty || !subscribed.isEmpty else { return }
        let owners = (bought.map(\.ownership) + subscribed.map(\.ownership)).map(\.newOwner?.customer.number)
        try transaction.query(
            Queries.handOverDue,
            [
                .int8s(bought.map(\.rowID) + subscribed.map { _ in nil }),
                .int8s(bought.map { _ in nil } + subscribed.map(\.rowID)), .int8s(owners),
            ])
    }

    /// Moves what was delivered of the purchases and subscriptions that `owners` give away to their new owner.
    func moveDeliveries(from owners: Set<CustomerID>, to customer: CustomerID, in transaction: Transaction) throws {
        let bought = purchases.values.filter(\.ownership.isChanged).map(\.rowID)
        let subscribed = subscriptions.values.filter(\.ownership.isChanged).map(\.rowID)
        guard !bought.isEmpty || !subscribed.isEmpty else { return }
        // Every writer locks the queue before the deliveries.
        try transaction.query(Queries.markDue, [.int8s(bought), .int8s(subscribed)])
        try transaction.query(
            Queries.moveDeliveries,
            [.int8s(bought), .int8s(subscribed), .int8s(owners.map(\.number)), .int8(customer.number)])
    }
}

extension PurchaseDraft {
    /// Whether this settlement changes what Apple said of it, or its owner.
    var isChanged: Bool { version != stored?.version ?? 0 || ownership.isChanged }
}

extension SubscriptionDraft {
    /// Whether this settlement changes what Apple said of it, or its owner.
    var isChanged: Bool { version != stored?.version ?? 0 || ownership.isChanged }
}
