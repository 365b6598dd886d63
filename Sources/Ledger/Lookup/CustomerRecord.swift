import Postgres
import SQL
import Subscriptions

/// Everything one customer has, as known now.
package struct CustomerRecord: Sendable {
    /// The subscriptions they own.
    package let subscriptions: [OwnedSubscription]
    /// The one-time purchases they own.
    package let purchases: [OwnedPurchase]
    /// What those subscriptions were, are and will be unless something changes.
    package let timeline: [TimelineSpan]
    /// How many of their receipts Apple never vouched for.
    package let unverifiedReceipts: Int64
    /// Until when the operator's word counts for those; nil when there is none.
    package let provisionalUntil: Instant?

    /// Subscriptions, and purchases, that are told at most.
    package static let thingsMax: Int32 = 200
    /// Spans that are told at most; older ones are left out.
    package static let spansMax: Int32 = 1000
}

/// A subscription as its owner's record tells it; the words of `perennial.subscription_now`.
package struct OwnedSubscription: Sendable {
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// Apple's id of it.
    package let id: OriginalTransactionID
    /// The subscription group, where Apple says it.
    package let group: String?
    /// The product of the running or last period.
    package let productID: ProductID
    /// Its state now.
    package let state: String
    /// Why that state.
    package let reason: String?
    /// Whether it gives access now.
    package let entitled: Bool
    /// Apple's expiry of the newest period.
    package let expiresAt: Instant?
    /// When access ends unless something changes; nil without access.
    package let entitledUntil: Instant?
    /// Whether it will renew; nil when Apple does not say.
    package let willRenew: Bool?
    /// What it will renew to.
    package let renewsTo: ProductID?
    /// Trial, offers and the like, sorted.
    package let flags: [String]
    /// How many periods are known.
    package let periods: Int
    /// When the first began.
    package let startedAt: Instant?
    /// Apple's clock of the evidence.
    package let asOf: Instant?
    /// When the last verified answer came.
    package let checkedAt: Instant?
}

/// A one-time purchase as its owner's record tells it.
package struct OwnedPurchase: Sendable {
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// Apple's id of the transaction.
    package let transactionID: String
    /// Apple's id of the first such transaction.
    package let originalTransactionID: OriginalTransactionID
    /// The product.
    package let productID: ProductID
    /// How many.
    package let quantity: Int
    /// When.
    package let purchasedAt: Instant
    /// When it was refunded.
    package let revokedAt: Instant?
}

/// One stretch of a subscription's timeline.
package struct TimelineSpan: Sendable {
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The subscription.
    package let id: OriginalTransactionID
    /// When it begins; nil is ever.
    package let from: Instant?
    /// When it ends; nil is never.
    package let until: Instant?
    /// The state in it.
    package let state: String
    /// Why.
    package let reason: String?
    /// Whether it gives access.
    package let entitled: Bool
    /// The product.
    package let productID: ProductID
    /// Until when access goes on although it ended, should Apple not be asked; nil when it does not.
    package let heldUntil: Instant?
}

extension SubscriptionLedger {
    /// What a customer has; a customer nobody knows has nothing.
    package func record(of customer: String, app bundleID: BundleID) async throws -> CustomerRecord {
        let whose: [Parameter] = [.text(bundleID.text), .text(customer)]
        async let subscriptions = reads.query(
            Queries.customerSubscriptions, whose + [.int4(CustomerRecord.thingsMax)])
        async let purchases = reads.query(
            Queries.customerPurchases, whose + [.int4(CustomerRecord.thingsMax)])
        async let spans = reads.query(Queries.customerTimeline, whose + [.int4(CustomerRecord.spansMax)])
        async let unverified = reads.query(Queries.customerUnverified, whose)
        let waiting = try await unverified.first
        return CustomerRecord(
            subscriptions: try await subscriptions.map(OwnedSubscription.init(row:)),
            purchases: try await purchases.map(OwnedPurchase.init(row:)),
            timeline: try await spans.map(TimelineSpan.init(row:)),
            unverifiedReceipts: try waiting?.int8("receipts") ?? 0,
            provisionalUntil: try waiting?.instantIfPresent("provisional_until"))
    }
}

extension OwnedSubscription {
    fileprivate init(row: Row) throws {
        environment = try row.word("environment")
        id = OriginalTransactionID(try row.text("original_transaction_id"))
        group = try row.textIfPresent("subscription_group_identifier")
        productID = ProductID(try row.text("product_id"))
        state = try row.text("state")
        reason = try row.textIfPresent("reason")
        entitled = try row.bool("entitled")
        expiresAt = try row.instantIfPresent("expires_at")
        entitledUntil = try row.instantIfPresent("entitled_until")
        willRenew = try row.boolIfPresent("will_renew")
        renewsTo = try row.textIfPresent("renews_to_product_id").map { ProductID($0) }
        flags = try row.texts("flags")
        periods = Int(try row.int4("periods"))
        startedAt = try row.instantIfPresent("started_at")
        asOf = try row.instantIfPresent("as_of")
        checkedAt = try row.instantIfPresent("checked_at")
    }
}

extension OwnedPurchase {
    fileprivate init(row: Row) throws {
        environment = try row.word("environment")
        transactionID = try row.text("transaction_id")
        originalTransactionID = OriginalTransactionID(try row.text("original_transaction_id"))
        productID = ProductID(try row.text("product_id"))
        quantity = Int(try row.int4("quantity"))
        purchasedAt = try row.instant("purchased_at")
        revokedAt = try row.instantIfPresent("revoked_at")
    }
}

extension TimelineSpan {
    fileprivate init(row: Row) throws {
        environment = try row.word("environment")
        id = OriginalTransactionID(try row.text("original_transaction_id"))
        from = try row.instantIfPresent("valid_from")
        until = try row.instantIfPresent("valid_until")
        state = try row.text("state")
        reason = try row.textIfPresent("reason")
        entitled = try row.bool("entitled")
        productID = ProductID(try row.text("product_id"))
        heldUntil = try row.instantIfPresent("held_until")
    }
}
