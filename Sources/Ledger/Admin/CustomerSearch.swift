import Postgres
import SQL
package import Subscriptions

/// A customer found by a search.
package struct FoundCustomer: Sendable, Hashable {
    /// The app.
    package let bundleID: BundleID
    /// The operator's own id.
    package let customer: String
    /// The time when the customer was created.
    package let createdAt: Instant
}

extension LedgerAdmin {
    /// Returns customers whose id begins with `text`, who have a transaction with that id, or who sent the receipt with
    /// that number; at most `limit`.
    package func search(_ text: String, limit: Int) async throws -> [FoundCustomer] {
        let prefix = text.replacing(#/[\\%_]/#) { "\\\($0.output)" } + "%"
        return try await reads.query(
            Queries.searchCustomers,
            [.text(prefix), .text(text), .int8(Int64(text)), .int4(Int32(clamping: limit))]
        ).map { row in
            FoundCustomer(
                bundleID: BundleID(try row.text("bundle_id")), customer: try row.text("name"),
                createdAt: try row.instant("created_at"))
        }
    }
}
