import Postgres
import SQL
import Subscriptions

/// Customers whose stored entitlements a transaction changes. They are locked by key, after the subscriptions and
/// purchases and before their ownerships, so that two changes to one customer never lose one another.
struct EntitledCustomers {
    private let ids: [Int64]

    /// Locks customers, and those with a provisional entitlement of `receipts`.
    init(
        locking customers: Set<CustomerID>, verifying receipts: [ReceiptID] = [], in transaction: Transaction
    ) throws {
        guard !customers.isEmpty || !receipts.isEmpty else {
            ids = []
            return
        }
        ids = try transaction.query(
            Queries.lockEntitled,
            [.int8s(customers.map(\.number)), .int8s(receipts.map(\.number))]
        ).map { try $0.int8("customer_id") }
    }

    /// Computes and stores what they may use. It comes after every change of the transaction.
    func store(in transaction: Transaction) throws {
        guard !ids.isEmpty else { return }
        try transaction.query(Queries.storeEntitlements, [.int8s(ids)])
    }

    /// Marks what is stored as outdated: lookups compute it until a worker renews it.
    func outdate(in transaction: Transaction) throws {
        guard !ids.isEmpty else { return }
        try transaction.query(Queries.outdateEntitlements, [.int8s(ids)])
    }
}

extension SettlementRun {
    /// Locks the customers whose entitlements the folded subscriptions and purchases change: their owners, before and
    /// after. `receipts` are vouched for for the first time, which ends what was provisional.
    func lockEntitled(verifying receipts: [ReceiptID] = [], in transaction: Transaction) throws -> EntitledCustomers {
        let owned =
            subscriptions.values.filter { $0.version != $0.stored?.version ?? 0 }.map(\.ownership)
            + purchases.values.filter { $0.version != $0.stored?.version ?? 0 }.map(\.ownership)
        let owners = owned.flatMap { [$0.owner?.customer, $0.current?.customer].compactMap(\.self) }
        return try EntitledCustomers(locking: Set(owners), verifying: receipts, in: transaction)
    }
}

extension LedgerCustomers {
    /// The most customers whose entitlements one transaction renews.
    private static let renewalsMax = 500

    /// Renews stored entitlements that a new catalog or an import outdated; returns for how many customers. More may be
    /// left when it returns the most of one transaction.
    package func renewEntitlements() async throws -> Int {
        let outdated = try await query(Queries.findOutdatedEntitlements, [.int4(Int32(Self.renewalsMax))])
            .map { CustomerID(number: try $0.int8("customer_id")) }
        guard !outdated.isEmpty else { return 0 }
        try await database.transaction { transaction in
            try EntitledCustomers(locking: Set(outdated), in: transaction).store(in: transaction)
        }
        return outdated.count
    }

    /// Renews all that is outdated, in batches.
    package func renewAllEntitlements() async throws {
        while try await renewEntitlements() == Self.renewalsMax {}
    }
}
