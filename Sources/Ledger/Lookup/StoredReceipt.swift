import Postgres
import SQL
package import Subscriptions

/// A stored receipt as `receipt list` and `receipt show` show it.
package struct StoredReceipt: Sendable {
    /// The receipt's key.
    package let id: ReceiptID
    /// The receipt's app.
    package let bundleID: BundleID
    /// The customers who uploaded it.
    package let customers: [String]
    /// The subscriptions that Apple's answers showed in it.
    package let subscriptions: [OriginalTransactionID]
    /// What the device sent.
    package let form: SubmittedForm
    /// Why its contents count as its sender's.
    package let vouching: Vouching
    /// The environment in which it was verified.
    package let environment: StoreEnvironment?
    /// How the last answer counts; nil before the first.
    package let outcome: String?
    /// Why the last answer was not verified, or what was odd about it.
    package let reason: String?
    /// When it was first received.
    package let receivedAt: Instant
    /// When Apple was last asked.
    package let askedAt: Instant?
    /// When Apple last vouched for it.
    package let verifiedAt: Instant?
    /// When Apple will be asked again; nil when the receipt needs no more checks.
    package let nextCheckAt: Instant?
}

extension LedgerCustomers {
    /// Returns stored receipts, newest first, of an app and a customer where given.
    package func receipts(
        app bundleID: BundleID? = nil, customer: String? = nil, id: ReceiptID? = nil, limit: Int = 100
    ) async throws -> [StoredReceipt] {
        let rows = try await query(
            Queries.findReceipts,
            [.text(bundleID?.text), .text(customer), .int8(id?.number), .int4(Int32(clamping: limit))])
        return try rows.map(StoredReceipt.init(row:))
    }
}

extension StoredReceipt {
    init(row: Row) throws {
        id = ReceiptID(try row.int8("receipt_id"))
        bundleID = BundleID(try row.text("bundle_id"))
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
