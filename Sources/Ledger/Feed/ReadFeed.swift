import Postgres
import SQL
import Subscriptions

/// How far the feed is, and which feed it is: positions of another one mean nothing here.
package struct FeedHead: Sendable, Hashable {
    /// The feed's own id, a UUID.
    package let feed: String
    /// The newest position; 0 while the feed is empty.
    package let position: Int64

    /// A head.
    package init(feed: String, position: Int64) {
        self.feed = feed
        self.position = position
    }
}

/// One change, at its place in the feed.
package struct FeedEvent: Sendable {
    /// The place.
    package let position: Int64
    /// The event's own id, a UUID that another database of the same history gives it too.
    package let publicID: String
    /// The app.
    package let bundleID: BundleID
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The subscription's or purchase's id.
    package let originalTransactionID: OriginalTransactionID
    /// Who owned it then; nil for nobody.
    package let customer: String?
    /// What happened.
    package let kind: String
    /// The product it is about.
    package let productID: ProductID
    /// When it happened, by Apple.
    package let occurredAt: Instant
    /// When it was written down.
    package let recordedAt: Instant
    /// The version of the subscription or purchase that it came with.
    package let version: Int64
    /// Its place among the events of that version.
    package let ordinal: Int
    /// More about it, as a JSON object.
    package let detail: String
}

/// A stretch of the feed.
package struct FeedPage: Sendable {
    /// The events in order.
    package let events: [FeedEvent]
    /// Everything up to here was looked at: the cursor to go on from.
    package let position: Int64
    /// The feed when it was looked at.
    package let head: FeedHead
}

extension SubscriptionLedger {
    /// How many positions one page looks at, so that a rare app's page costs no more than anyone's.
    static let feedPositionsMax: Int64 = 10_000

    /// The feed's id and newest position, from the primary: a cursor may be younger than a standby.
    package func feedHead() async throws -> FeedHead {
        guard let row = try await query(Queries.readFeedHead).first else {
            throw LedgerError(.mismatch, "The database has no feed; run `perennial migrate`.")
        }
        return FeedHead(feed: try row.text("feed_id"), position: try row.int8("position"))
    }

    /// The events after a position, at most `limit`, of one app where given.
    package func feed(after position: Int64, app bundleID: BundleID? = nil, limit: Int) async throws -> FeedPage {
        let head = try await feedHead()
        guard position < head.position else { return FeedPage(events: [], position: position, head: head) }
        let end = min(head.position, position + Self.feedPositionsMax)
        let rows = try await query(
            Queries.readFeed,
            [.int8(position), .int8(end), .text(bundleID?.text), .int4(Int32(clamping: limit))])
        let events = try rows.map(FeedEvent.init(row:))
        return FeedPage(events: events, position: events.count < limit ? end : events.last?.position ?? end, head: head)
    }
}

extension FeedEvent {
    fileprivate init(row: Row) throws {
        position = try row.int8("position")
        publicID = try row.text("public_id")
        bundleID = BundleID(try row.text("bundle_id"))
        environment = try row.word("environment")
        originalTransactionID = OriginalTransactionID(try row.text("original_transaction_id"))
        customer = try row.textIfPresent("customer")
        kind = try row.text("kind")
        productID = ProductID(try row.text("product_id"))
        occurredAt = try row.instant("occurred_at")
        recordedAt = try row.instant("recorded_at")
        version = try row.int8("version")
        ordinal = Int(try row.int2("ordinal"))
        detail = try row.text("detail")
    }
}
