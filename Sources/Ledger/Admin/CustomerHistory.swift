import Postgres
import SQL
import Subscriptions

/// A stretch of the timeline of a subscription, as it is known now.
package struct TimelineStretch: Sendable {
    /// The subscription.
    package let originalTransactionID: OriginalTransactionID
    /// The product.
    package let productID: ProductID
    /// The state, in the words of the schema `perennial`.
    package let state: String
    /// Why that state.
    package let reason: String?
    /// Whether it gives access.
    package let entitled: Bool
    /// What is special about it, such as `trial`.
    package let flags: [String]
    /// When it begins; nil is ever since.
    package let since: Instant?
    /// When it ends; nil is never.
    package let until: Instant?
}

/// A change, as the feed tells it.
package struct ToldEvent: Sendable {
    /// What happened.
    package let kind: String
    /// To which subscription or purchase.
    package let originalTransactionID: OriginalTransactionID
    /// The product.
    package let productID: ProductID
    /// When, by Apple's clock.
    package let occurredAt: Instant
    /// When it was recorded, by the database's.
    package let recordedAt: Instant
}

extension SubscriptionLedger {
    /// The timelines of what a customer owns, newest stretch first.
    package func timelines(app bundleID: BundleID, customer: String, limit: Int) async throws -> [TimelineStretch] {
        let rows = try await query(
            Queries.readTimelines, [.text(bundleID.text), .text(customer), .int4(Int32(clamping: limit))])
        return try rows.map { row in
            TimelineStretch(
                originalTransactionID: OriginalTransactionID(try row.text("original_transaction_id")),
                productID: ProductID(try row.text("product_id")), state: try row.text("state"),
                reason: try row.textIfPresent("reason"), entitled: try row.bool("entitled"),
                flags: try row.texts("flags"), since: try row.instantIfPresent("since"),
                until: try row.instantIfPresent("until"))
        }
    }

    /// What happened to what a customer owns, newest first.
    package func events(app bundleID: BundleID, customer: String, limit: Int) async throws -> [ToldEvent] {
        let rows = try await query(
            Queries.readCustomerEvents, [.text(bundleID.text), .text(customer), .int4(Int32(clamping: limit))])
        return try rows.map { row in
            ToldEvent(
                kind: try row.text("kind"),
                originalTransactionID: OriginalTransactionID(try row.text("original_transaction_id")),
                productID: ProductID(try row.text("product_id")), occurredAt: try row.instant("occurred_at"),
                recordedAt: try row.instant("recorded_at"))
        }
    }
}
