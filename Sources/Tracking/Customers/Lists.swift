import Postgres
import SQL
package import Subscriptions

/// A customer in the list of an app.
package struct ListedCustomer: Sendable, Hashable {
    package let name: String
    /// The customer that the name means now; nil where it was not merged.
    package let mergedInto: String?
    package let createdAt: Instant
}

/// A subscription in the list of an app.
package struct ListedSubscription: Sendable {
    /// The customer who owns it; nil where none does.
    package let customer: String?
    package let subscription: OwnedSubscription
}

/// A page of the list of subscriptions.
package struct SubscriptionListPage: Sendable {
    /// The subscriptions, in the order of environment and id.
    package let subscriptions: [ListedSubscription]
    /// The place to continue after; nil at the end.
    package let next: SubscriptionPlace?
}

/// The place of a subscription in the list of an app.
package struct SubscriptionPlace: Sendable, Hashable {
    package let environment: StoreEnvironment
    /// Apple's id of it; empty is before the first.
    package let id: String

    package init(_ environment: StoreEnvironment, _ id: String) { (self.environment, self.id) = (environment, id) }
}

/// Lists of everything that an app has, page by page. Each page is found by index.
extension LedgerCustomers {
    /// Returns whether an app has a customer with this id, or a name that was merged. Throws `unknownApp` for an unknown app.
    package func isKnown(_ customer: String, of bundleID: BundleID) async throws -> Bool {
        let found = try await query(Queries.findCustomer, .text(bundleID.text), .text(customer), .instant(nil))
        guard let row = found.first else { throw LedgerError.unknownApp(bundleID) }
        return try row.int8IfPresent("customer_id") != nil
    }
    /// Returns at most `limit` customers whose names come after one and begin with `prefix`, by their bytes; no erased ones.
    package func list(
        of bundleID: BundleID, after: String = "", prefix: String = "", limit: Int
    ) async throws -> [ListedCustomer] {
        try await ledger.reads.query(
            Queries.listCustomers, [.text(bundleID.text), .text(after), .text(prefix), .int4(Int32(clamping: limit))]
        ).map { row in
            ListedCustomer(
                name: try row.text("name"), mergedInto: try row.textIfPresent("merged_into"),
                createdAt: try row.instant("created_at"))
        }
    }

    /// The most subscriptions that one page looks at for a state or a product.
    private static let scannedMax: Int32 = 2_000

    /// Returns the subscriptions after a place, at most `limit`, with the state and product of now where given. Then it
    /// looks at no more than `scannedMax`, so that a rare one costs no more than a page, which may be short and still
    /// have a next one.
    package func listSubscriptions(
        of bundleID: BundleID, environment: StoreEnvironment? = nil, state: State? = nil, productID: ProductID? = nil,
        after: SubscriptionPlace?, limit: Int
    ) async throws -> SubscriptionListPage {
        let start = after ?? SubscriptionPlace(environment ?? .production, "")
        let limit = Int32(clamping: limit)
        let scanned = state == nil && productID == nil ? limit : Self.scannedMax
        let rows = try await ledger.reads.query(
            Queries.listSubscriptions,
            [
                .text(bundleID.text), .text(start.environment.rawValue), .text(start.id),
                .text((environment ?? .sandbox).rawValue), .int4(limit), .text(state?.rawValue),
                .text(productID?.text), .int4(scanned),
            ])
        let found = try rows.filter { try $0.isNull("original_transaction_id") == false }.map { row in
            ListedSubscription(
                customer: try row.textIfPresent("customer"), subscription: try OwnedSubscription(row: row))
        }
        let lookedAt = try rows.first.flatMap { row in
            try row.textIfPresent("last_id").map { SubscriptionPlace(try row.word("last_environment"), $0) }
        }
        let last = found.last.map { SubscriptionPlace($0.subscription.environment, $0.subscription.id.text) }
        return SubscriptionListPage(subscriptions: found, next: found.count == Int(limit) ? last : lookedAt)
    }

    /// Returns the receipts before a receipt, of one customer or of all, newest first, at most `limit`.
    package func listReceipts(
        of bundleID: BundleID, customer: String?, before: Int64, limit: Int
    ) async throws -> [StoredReceipt] {
        try await ledger.reads.query(
            Queries.listReceipts, [.text(bundleID.text), .text(customer), .int8(before), .int4(Int32(clamping: limit))]
        ).map(StoredReceipt.init(row:))
    }

    /// Returns stored receipts, newest first, of an app and a customer where given.
    package func receipts(
        app bundleID: BundleID? = nil, customer: String? = nil, id: ReceiptID? = nil, limit: Int = 100
    ) async throws -> [StoredReceipt] {
        try await query(
            Queries.findReceipts, .text(bundleID?.text), .text(customer), .int8(id?.number),
            .int4(Int32(clamping: limit))
        ).map(StoredReceipt.init(row:))
    }
}

/// A stored receipt as `receipt list` and `receipt show` show it.
package struct StoredReceipt: Sendable {
    package let id: ReceiptID
    package let bundleID: BundleID
    package let customers: [String]
    /// The subscriptions that Apple's answers showed in it.
    package let subscriptions: [OriginalTransactionID]
    package let form: SubmittedForm
    /// Why its contents count as its sender's.
    package let vouching: Vouching
    /// The environment in which it was verified.
    package let environment: StoreEnvironment?
    /// How the last answer counts; nil before the first.
    package let outcome: String?
    /// Why the last answer was not verified, or what was odd about it.
    package let reason: String?
    package let receivedAt: Instant
    package let askedAt: Instant?
    package let verifiedAt: Instant?
    /// When Apple will be asked again; nil when the receipt needs no more checks.
    package let nextCheckAt: Instant?

    init(row: Row) throws {
        id = ReceiptID(try row.int8("receipt_id"))
        bundleID = try row.id("bundle_id")
        customers = try row.texts("customers")
        subscriptions = try row.texts("subscriptions").map { OriginalTransactionID($0) }
        form = try row.word("form")
        vouching = Vouching(form, isVouched: try row.bool("vouched"))
        environment = try row.wordIfPresent("environment")
        outcome = try row.textIfPresent("outcome")
        reason = try row.textIfPresent("reason")
        receivedAt = try row.instant("received_at")
        askedAt = try row.instantIfPresent("asked_at")
        verifiedAt = try row.instantIfPresent("verified_at")
        nextCheckAt = try row.instantIfPresent("due_at")
    }
}
