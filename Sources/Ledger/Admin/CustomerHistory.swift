import Postgres
import SQL
package import Subscriptions

/// A stretch of a subscription's timeline, as currently known.
package struct RecordedSpan: Sendable {
    /// The subscription.
    package let originalTransactionID: OriginalTransactionID
    /// The product.
    package let productID: ProductID
    /// The state, in the words of the schema `perennial`.
    package let state: String
    /// The reason for that state.
    package let reason: String?
    /// Whether it gives access.
    package let entitled: Bool
    /// The flags of the stretch, such as `trial`.
    package let flags: [String]
    /// The start; nil if there is none.
    package let since: Instant?
    /// The end; nil if there is none.
    package let until: Instant?
}

/// A change, as the feed reports it.
package struct RecordedEvent: Sendable {
    /// The kind of the event.
    package let kind: String
    /// The subscription or purchase.
    package let originalTransactionID: OriginalTransactionID
    /// The product.
    package let productID: ProductID
    /// The time of the change, by Apple's clock.
    package let occurredAt: Instant
    /// The time when the change was recorded, by the database's clock.
    package let recordedAt: Instant
}

extension LedgerAdmin {
    /// Returns the timelines of the subscriptions a customer owns, newest stretch first, at most `limit` stretches.
    package func timelines(app bundleID: BundleID, customer: String, limit: Int) async throws -> [RecordedSpan] {
        let rows = try await query(
            Queries.readTimelines, [.text(bundleID.text), .text(customer), .int4(Int32(clamping: limit))])
        return try rows.map { row in
            RecordedSpan(
                originalTransactionID: OriginalTransactionID(try row.text("original_transaction_id")),
                productID: ProductID(try row.text("product_id")), state: try row.text("state"),
                reason: try row.textIfPresent("reason"), entitled: try row.bool("entitled"),
                flags: try row.texts("flags"), since: try row.instantIfPresent("since"),
                until: try row.instantIfPresent("until"))
        }
    }

    /// Returns the events of everything a customer owns, newest first, at most `limit`.
    package func events(app bundleID: BundleID, customer: String, limit: Int) async throws -> [RecordedEvent] {
        let rows = try await query(
            Queries.readCustomerEvents, [.text(bundleID.text), .text(customer), .int4(Int32(clamping: limit))])
        return try rows.map { row in
            RecordedEvent(
                kind: try row.text("kind"),
                originalTransactionID: OriginalTransactionID(try row.text("original_transaction_id")),
                productID: ProductID(try row.text("product_id")), occurredAt: try row.instant("occurred_at"),
                recordedAt: try row.instant("recorded_at"))
        }
    }
}
