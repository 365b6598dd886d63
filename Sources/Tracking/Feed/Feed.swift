import Logging
import Postgres
import SQL
import ServiceLifecycle
package import Subscriptions

extension LedgerFeed {
    /// The number of waits for a sequencer at work elsewhere, and the milliseconds of each.
    private static let busyTriesMax = 5
    private static let busyMilliseconds = 10

    /// Assigns a position to every event that is committed by now, in steps of `limit`. Returns false when another
    /// sequencer stayed at work; it may have started too early to see the events.
    @discardableResult
    package func sequenceAll(limit: Int = 10_000) async throws -> Bool {
        var tries = 0
        while tries < Self.busyTriesMax {
            switch try await sequence(limit: limit) {
            case nil:
                tries += 1
                try await Task.sleep(for: .milliseconds(Self.busyMilliseconds))
            case .some(let placed) where placed < limit: return true
            case .some: continue
            }
        }
        return false
    }

    /// Assigns committed events their positions in the feed, at most `limit`; returns how many it placed, nil when
    /// another sequencer is at work. Positions have no gaps, start at 1 and follow each subscription's order.
    @discardableResult
    package func sequence(limit: Int = 10_000) async throws -> Int? {
        try await database.transaction { transaction in
            guard try transaction.query(Queries.lockFeed).first?.bool("locked") == true else { return nil }
            return try transaction.execute(Statement(Queries.sequenceFeed), [.int4(Int32(clamping: limit))])
        }
    }
}

/// A signal to the worker of this process that events want positions. Rings that it has not received yet count as one.
struct FeedBell: Sendable {
    let rings: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation

    init() { (rings, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

    func ring() { bell.yield() }
}

extension Tracker {
    /// Records the feed's new id when the database is another one than before, as after a restore, and logs it.
    func checkFeedPlace() async {
        guard let renewal = await attempt("see where the feed lives", { try await ledger.feed.checkPlace() }) ?? nil
        else { return }
        logger.warning(
            "the database was restored, so the feed has a new id; consumers read anew what they mirror",
            metadata: ["feed": "\(renewal.feed)", "former": "\(renewal.former)"])
    }

    /// Checks once a minute where the feed lives, until shutdown.
    package func maintainFeedPlace() async {
        while !isStopping() {
            await checkFeedPlace()
            await rest(seconds: 60)
        }
    }

    /// Gives the events of this process their positions until shutdown. `runMaintenance` finds what is left.
    func keepFeed() async {
        await cancelWhenGracefulShutdown {
            for await _ in feedBell.rings {
                let done = await attempt("place events in the feed") { try await ledger.feed.sequenceAll() }
                // Another process is placing events. It may have begun before our events were committed, so try again.
                if done == false { feedBell.ring() }
            }
        }
    }
}

/// The identity and newest position of the feed; a position is valid only in the feed it comes from.
package struct FeedHead: Sendable, Hashable {
    package let feed: String
    /// The newest position; 0 while the feed is empty.
    package let position: Int64
}

/// One change and its position in the feed.
package struct FeedEvent: Sendable {
    package let position: Int64
    /// The event's id, a UUID; another database with the same history gives the event the same id.
    package let publicID: String
    package let bundleID: BundleID
    package let environment: StoreEnvironment
    /// The subscription's or purchase's id; nil where a customer's manual changes are reported.
    package let originalTransactionID: OriginalTransactionID?
    /// The owner at that time; nil if there was none.
    package let customer: String?
    package let kind: String
    /// The product; nil where a customer's manual changes are reported.
    package let productID: ProductID?
    /// The time of the change, by Apple's clock.
    package let occurredAt: Instant
    package let recordedAt: Instant
    /// The version of the subscription or purchase that the event belongs to.
    package let version: Int64
    /// Its ordinal among the events of that version.
    package let ordinal: Int
    /// Further details, as a JSON object.
    package let detail: String

    fileprivate init(row: Row) throws {
        position = try row.int8("position")
        publicID = try row.text("public_id")
        bundleID = try row.id("bundle_id")
        environment = try row.word("environment")
        originalTransactionID = try row.idIfPresent("original_transaction_id")
        customer = try row.textIfPresent("customer")
        kind = try row.text("kind")
        productID = try row.idIfPresent("product_id")
        occurredAt = try row.instant("occurred_at")
        recordedAt = try row.instant("recorded_at")
        version = try row.int8("version")
        ordinal = Int(try row.int2("ordinal"))
        detail = try row.text("detail")
    }
}

/// A stretch of the feed.
package struct FeedPage: Sendable {
    package let events: [FeedEvent]
    /// The last position that was searched: the cursor to continue from.
    package let position: Int64
    package let head: FeedHead
}

/// A change of the feed's id: cursors of the former feed are refused.
package struct FeedRenewal: Sendable, Hashable {
    package let former: String
    package let feed: String

    init(row: Row) throws {
        former = try row.text("former_id")
        feed = try row.text("feed_id")
    }
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
            Queries.readFeed, .int8(position), .int8(end), .text(bundleID?.text), .int4(Int32(clamping: limit)))
        let events = try rows.map(FeedEvent.init(row:))
        return FeedPage(events: events, position: events.count < limit ? end : events.last?.position ?? end, head: head)
    }

    /// Stores the feed's new id for the logs, if the database was restored since the feed got its old id; else returns
    /// nil. Readers already get the new id, and no event gets a position under the old one.
    package func checkPlace() async throws -> FeedRenewal? {
        try await write(Queries.checkFeedPlace).first.map(FeedRenewal.init(row:))
    }

    /// Gives the feed a new id, for a database that was rolled back in place; nil where its id is not `former`.
    package func renew(insteadOf former: String? = nil) async throws -> FeedRenewal? {
        try await database.transaction { transaction in
            try transaction.query(Queries.checkFeedPlace)
            guard let row = try transaction.query(Queries.renewFeed, .text(former)).first else { return nil }
            let renewal = try FeedRenewal(row: row)
            try ledger.audit(
                .feedRenewed, detail: ["from": renewal.former, "to": renewal.feed, "because": "by hand"],
                in: transaction)
            return renewal
        }
    }
}
