import Postgres
import SQL
package import Subscriptions

/// The identity and newest position of the feed; a position is valid only in the feed it comes from.
package struct FeedHead: Sendable, Hashable {
    /// The id of the feed, a UUID.
    package let feed: String
    /// The newest position; 0 while the feed is empty.
    package let position: Int64

    /// Creates a head.
    package init(feed: String, position: Int64) {
        self.feed = feed
        self.position = position
    }
}

/// One change and its position in the feed.
package struct FeedEvent: Sendable {
    /// The position.
    package let position: Int64
    /// The event's id, a UUID; another database with the same history gives the event the same id.
    package let publicID: String
    /// The app.
    package let bundleID: BundleID
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The subscription's or purchase's id; nil where a customer's manual changes are reported.
    package let originalTransactionID: OriginalTransactionID?
    /// The owner at that time; nil if there was none.
    package let customer: String?
    /// The kind of the event.
    package let kind: String
    /// The product; nil where a customer's manual changes are reported.
    package let productID: ProductID?
    /// The time of the change, by Apple's clock.
    package let occurredAt: Instant
    /// The time when the change was recorded.
    package let recordedAt: Instant
    /// The version of the subscription or purchase that the event belongs to.
    package let version: Int64
    /// Its ordinal among the events of that version.
    package let ordinal: Int
    /// Further details, as a JSON object.
    package let detail: String
}

/// A stretch of the feed.
package struct FeedPage: Sendable {
    /// The events in order.
    package let events: [FeedEvent]
    /// The last position that was searched: the cursor to continue from.
    package let position: Int64
    /// The head of the feed when the page was read.
    package let head: FeedHead
}

extension LedgerFeed {
    /// The number of positions that one page searches, so that a page of a rare app costs no more than any other.
    static let feedPositionsMax: Int64 = 10_000

    /// Returns the feed's id and newest position, from the primary: a cursor may be newer than a standby.
    package func head() async throws -> FeedHead {
        guard let row = try await query(Queries.readFeedHead).first else {
            throw LedgerError(.mismatch, "The database has no feed; run `perennial migrate`.")
        }
        return FeedHead(feed: try row.text("feed_id"), position: try row.int8("position"))
    }

    /// Returns the events after a position, at most `limit`; with `bundleID`, only those of that app.
    package func read(after position: Int64, app bundleID: BundleID? = nil, limit: Int) async throws -> FeedPage {
        let head = try await head()
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
        originalTransactionID = try row.textIfPresent("original_transaction_id").map { OriginalTransactionID($0) }
        customer = try row.textIfPresent("customer")
        kind = try row.text("kind")
        productID = try row.textIfPresent("product_id").map { ProductID($0) }
        occurredAt = try row.instant("occurred_at")
        recordedAt = try row.instant("recorded_at")
        version = try row.int8("version")
        ordinal = Int(try row.int2("ordinal"))
        detail = try row.text("detail")
    }
}
