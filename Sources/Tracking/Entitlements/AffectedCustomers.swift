import Postgres
import SQL
import Subscriptions

/// Customers whose stored entitlements a transaction changes. They are locked by key, after the subscriptions and
/// purchases, so that two changes to one customer never lose one another.
struct AffectedCustomers {
    private let ids: [Int64]
    /// Those whose names mean another customer by now.
    private let merged: Set<CustomerID>
    /// Those with provisional access that ends now, because Apple vouches for the receipt for the first time.
    let losingProvisional: Set<CustomerID>

    /// Locks customers, and those with a provisional entitlement of `receipts`.
    init(locking customers: Set<CustomerID>, verifying receipts: [ReceiptID] = [], in transaction: Transaction) throws {
        guard !customers.isEmpty || !receipts.isEmpty else {
            (ids, merged, losingProvisional) = ([], [], [])
            return
        }
        let rows = try transaction.query(
            Queries.lockAffectedCustomers, .int8s(customers.map(\.number)), .int8s(receipts.map(\.number)))
        ids = try rows.map { try $0.int8("customer_id") }
        func those(where column: String) throws -> Set<CustomerID> {
            Set(try rows.filter { try $0.bool(column) }.map { CustomerID(number: try $0.int8("customer_id")) })
        }
        merged = try those(where: "is_merged")
        losingProvisional = try those(where: "is_provisional")
    }

    /// Throws `PollersChanged` where one of the customers was merged into another one before the lock.
    func requireOwnNames(of customers: [CustomerID]) throws(PollersChanged) {
        if customers.contains(where: merged.contains) { throw PollersChanged() }
    }

    /// Computes and stores what they may use. It comes after every change of the transaction.
    func store(in transaction: Transaction) throws {
        guard !ids.isEmpty else { return }
        try transaction.query(Queries.storeEntitlements, .int8s(ids))
    }

    /// Marks what is stored as outdated, and what is not as missing: lookups compute it until a worker stores it.
    func outdate(in transaction: Transaction) throws {
        guard !ids.isEmpty else { return }
        try transaction.query(Queries.outdateEntitlements, .int8s(ids))
    }
}

extension SettlementRun {
    /// Locks the customers whose entitlements the folded subscriptions and purchases change: their owners, before and
    /// after. `receipts` are vouched for for the first time, which ends what was provisional.
    func lockAffectedCustomers(
        verifying receipts: [ReceiptID] = [], in transaction: Transaction
    ) throws -> AffectedCustomers {
        let owned =
            subscriptions.values.filter(\.changesEntitlements).map(\.ownership)
            + purchases.values.filter(\.isChanged).map(\.ownership)
        let owners = owned.flatMap { [$0.owner?.customer, $0.current?.customer].compactMap(\.self) }
        let affected = try AffectedCustomers(locking: Set(owners), verifying: receipts, in: transaction)
        try affected.requireOwnNames(of: owned.compactMap(\.newOwner?.customer))
        return affected
    }
}

extension SubscriptionDraft {
    /// Whether lookups about its owner, before or after, show anything else from now on. A timeline also changes without a
    /// new version, such as with another outage allowance. The end is that of the period that counts at the time of the
    /// answer, so it also changes where a refunded period outlives the one that ran beside it.
    fileprivate var changesEntitlements: Bool {
        isChanged || timelineChange.map { !$0.isEmpty } ?? false || stored?.expiresAt != state?.expiresAt
    }
}
