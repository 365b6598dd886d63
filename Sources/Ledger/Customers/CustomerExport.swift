import Postgres
import SQL
package import Subscriptions

/// Everything stored about one customer.
package struct CustomerExport: Sendable {
    /// A subscription or purchase that a customer owns or owned.
    package struct Ownership: Sendable, Hashable {
        /// Apple's id.
        package let originalTransactionID: OriginalTransactionID
        /// Apple's environment.
        package let environment: StoreEnvironment
        /// Whether it is a subscription rather than a one-time purchase.
        package let isSubscription: Bool
        /// The current product.
        package let productID: ProductID?
        /// The current state.
        package let state: String?
        /// A subscription's expiry or a purchase's refund.
        package let endsAt: Instant?
        /// The cause of the ownership; nil when it is no longer known.
        package let cause: OwnershipCause?
        /// The start of the ownership; nil if there is none.
        package let since: Instant?
        /// The end of the ownership; nil as long as nothing changes.
        package let until: Instant?
        /// The name of the next owner.
        package let wentTo: String?
    }

    /// The maximum number of receipts, ownerships, grants, orders, changes of each order and deliveries returned.
    package static let linesMax: Int32 = 200

    /// The operator's own id of the customer; for a merged name, the name it was merged into.
    package let name: String
    /// Other names that were merged into this one.
    package let otherNames: [String]
    /// The customer's current entitlements.
    package let entitlements: [Entitlement]
    /// Current and former ownerships, newest first.
    package let ownerships: [Ownership]
    /// Manual grants, newest first.
    package let grants: [ManualGrant]
    /// The customer's receipts, oldest first.
    package let receipts: [Reasons.ReceiptStanding]
    /// The newest orders with their logs, the newest deliveries, and the balances of credits.
    package let purchases: PurchaseHistory
}

extension LedgerCustomers {
    /// Returns everything stored about a customer; throws `notFound` when the app or the customer is unknown.
    package func export(_ name: String, of bundleID: BundleID) async throws -> CustomerExport {
        try Upload.requireValidCustomerID(name)
        let app = try await ledger.apps.app(bundleID)
        let entitlements = try await entitlements(app: bundleID, customer: name, fromPrimary: true)
        return try await database.transaction { transaction in
            try transaction.query(Queries.holdSnapshot)
            let people = try transaction.query(Queries.findNamedCustomers, [.int4(app.id), .texts([name])])
            guard let head = try people.first(where: { try $0.bool("is_head") }) else {
                throw LedgerError(.notFound, "\(bundleID) has no customer \(name).")
            }
            let customers = try people.map { try $0.int8("customer_id") }
            let ids = Parameter.int8s(customers)
            let limit = Parameter.int4(CustomerExport.linesMax)
            return CustomerExport(
                name: try head.text("name"),
                otherNames: try people.filter { try $0.bool("is_head") == false }.map { try $0.text("name") },
                entitlements: entitlements,
                ownerships: try transaction.query(Queries.readOwnerships, [ids, limit])
                    .map(CustomerExport.Ownership.init(row:)),
                grants: try transaction.query(Queries.readManualGrants, [ids, limit]).map(ManualGrant.init(row:)),
                receipts: try transaction.query(
                    Queries.readStandings, [.int8(try head.int8("customer_id")), limit]
                ).map(Reasons.ReceiptStanding.init(row:)),
                purchases: try PurchaseHistory(of: customers, limit: CustomerExport.linesMax, in: transaction))
        }
    }
}

extension CustomerExport.Ownership {
    fileprivate init(row: Row) throws {
        originalTransactionID = OriginalTransactionID(try row.text("original_transaction_id"))
        environment = try row.word("environment")
        isSubscription = try row.bool("is_subscription")
        productID = try row.textIfPresent("product_id").map { ProductID($0) }
        state = try row.textIfPresent("state")
        endsAt = try row.instantIfPresent("ends_at")
        cause = try row.wordIfPresent("cause")
        since = try row.instantIfPresent("since")
        until = try row.instantIfPresent("until")
        wentTo = try row.textIfPresent("went_to")
    }
}
