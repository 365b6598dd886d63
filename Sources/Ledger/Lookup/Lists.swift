import Postgres
import SQL
package import Subscriptions

/// A customer in the list of an app.
package struct ListedCustomer: Sendable, Hashable {
    /// The operator's own id.
    package let name: String
    /// The customer that the name means now; nil where it was not merged.
    package let mergedInto: String?
    /// When it was first stored.
    package let createdAt: Instant
}

/// A subscription in the list of an app.
package struct ListedSubscription: Sendable {
    /// The customer who owns it; nil where none does.
    package let customer: String?
    /// The subscription as it is now.
    package let subscription: OwnedSubscription
}

/// The place of a subscription in the list of an app.
package struct SubscriptionPlace: Sendable, Hashable {
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// Apple's id of it; empty is before the first.
    package let id: String

    /// Creates a place.
    package init(_ environment: StoreEnvironment, _ id: String) {
        self.environment = environment
        self.id = id
    }
}

extension LedgerCustomers {
    /// Returns whether an app has a customer with this id, or a name that was merged. Throws `notFound` for an unknown app.
    package func isKnown(_ customer: String, of bundleID: BundleID) async throws -> Bool {
        let found = try await query(Queries.findCustomer, [.text(bundleID.text), .text(customer), .instant(nil)])
        guard let row = found.first else { throw LedgerError(.notFound, "There is no app \(bundleID).") }
        return try row.int8IfPresent("customer_id") != nil
    }
}

/// Lists of everything that an app has, page by page. Each page is found by index.
extension LedgerCustomers {
    /// Returns the customers after a name whose names begin with `prefix`, in the order of their bytes, at most `limit`.
    /// Erased customers are left out.
    package func list(
        of bundleID: BundleID, after: String = "", prefix: String = "", limit: Int
    ) async throws -> [ListedCustomer] {
        try await ledger.reads.query(
            Queries.listCustomers,
            [.text(bundleID.text), .text(after), .text(prefix), .int4(Int32(clamping: limit))]
        ).map { row in
            ListedCustomer(
                name: try row.text("name"), mergedInto: try row.textIfPresent("merged_into"),
                createdAt: try row.instant("created_at"))
        }
    }

    /// Returns the subscriptions after a place, of one environment or of both, in the order of environment and id, at
    /// most `limit`.
    package func listSubscriptions(
        of bundleID: BundleID, in environment: StoreEnvironment?, after: SubscriptionPlace?, limit: Int
    ) async throws -> [ListedSubscription] {
        let start = after ?? SubscriptionPlace(environment ?? .production, "")
        return try await ledger.reads.query(
            Queries.listSubscriptions,
            [
                .text(bundleID.text), .text(start.environment.rawValue), .text(start.id),
                .text((environment ?? .sandbox).rawValue), .int4(Int32(clamping: limit)),
            ]
        ).map { row in
            ListedSubscription(
                customer: try row.textIfPresent("customer"), subscription: try OwnedSubscription(row: row))
        }
    }

    /// Returns the receipts before a receipt, of one customer or of all, newest first, at most `limit`.
    package func listReceipts(
        of bundleID: BundleID, customer: String?, before: Int64, limit: Int
    ) async throws -> [StoredReceipt] {
        try await ledger.reads.query(
            Queries.listReceipts,
            [.text(bundleID.text), .text(customer), .int8(before), .int4(Int32(clamping: limit))]
        ).map(StoredReceipt.init(row:))
    }
}
