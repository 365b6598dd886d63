import Hummingbird
import JSON
import Subscriptions
import Synchronization
import Tracking

/// `GET /v1/events`: the feed after a position, in order. It waits for new events for a while when there are none.
struct GetEvents: Sendable {
    /// The default and the largest number of events of a page.
    static let eventsUsual: Int64 = 100
    static let eventsMax: Int64 = 1000
    /// How long a caller may wait, in seconds: shorter than the timeout of any proxy.
    static let waitSecondsMax: Int64 = 30
    /// How often a waiting request looks for new events, in milliseconds.
    static let lookMilliseconds = 80

    let ledger: SubscriptionLedger
    let watch: FeedWatch

    func addRoute(to routes: KeyedRoutes) {
        let routes = routes.ofAnyApp(needing: .read, query: ["after", "feed", "limit", "wait"])
        routes.get("/v1/events") { request, context in
            let after = try request.number("after", from: 0, upTo: .max) ?? 0
            let limit = try request.number("limit", from: 1, upTo: Self.eventsMax) ?? Self.eventsUsual
            let wait = try request.number("wait", from: 0, upTo: Self.waitSecondsMax) ?? 0
            let feed = try request.uuid("feed")
            var page = try await ledger.feed.read(after: after, app: context.key.bundleID, limit: Int(limit))
            let end = ContinuousClock.now + .seconds(wait)
            while true {
                try refuseOtherFeed(page.head, feed: feed, after: after)
                guard page.events.isEmpty, try await hasNews(after: page, until: end) else { break }
                page = try await ledger.feed.read(after: page.position, app: context.key.bundleID, limit: Int(limit))
            }
            return Response([
                "feed": .string(page.head.feed), "events": .array(try page.events.map { try $0.json }),
                "position": .integer(page.position), "more": .bool(page.position < page.head.position),
            ])
        }
    }

    /// Throws a problem for a cursor of another feed. A position that this feed never issued is one too: a consumer
    /// that continued from it would miss the events in between.
    private func refuseOtherFeed(_ head: FeedHead, feed: String?, after: Int64) throws {
        guard feed ?? head.feed == head.feed, after <= head.position else {
            throw Problem(
                .otherFeed,
                "The cursor is not of this feed, as after a restore: read what you mirror anew, then go on from here.",
                members: ["feed": .string(head.feed), "position": .integer(head.position)])
        }
    }

    /// Returns whether the feed moves beyond the page before `end` and before the server stops.
    private func hasNews(after page: FeedPage, until end: ContinuousClock.Instant) async throws -> Bool {
        var head = page.head
        while head.feed == page.head.feed, head.position <= page.position {
            guard ContinuousClock.now < end, !isStopping() else { return false }
            try await Task.sleep(for: .milliseconds(Self.lookMilliseconds))
            head = try await watch.head()
        }
        return true
    }
}

extension FeedEvent {
    fileprivate var json: JSONValue {
        get throws {
            [
                "position": .integer(position),
                "id": .string(publicID),
                "app": .string(bundleID.text),
                "environment": .string(environment.rawValue),
                "original_transaction_id": .optional(originalTransactionID?.text),
                "customer": .optional(customer),
                "kind": .string(kind),
                "product_id": .optional(productID?.text),
                "occurred_at": .string(occurredAt.iso8601),
                "recorded_at": .string(recordedAt.iso8601),
                "version": .integer(version),
                "ordinal": .integer(Int64(ordinal)),
                "detail": try JSONValue(parsing: detail),
            ]
        }
    }
}

/// The feed's head, shared by all callers that wait for events: one query serves them all.
final class FeedWatch: Sendable {
    /// How long one query serves all callers, in milliseconds.
    static let ageMillisecondsMax = 40

    private let read: @Sendable () async throws -> FeedHead
    private let memory = Mutex<(head: FeedHead?, asked: ContinuousClock.Instant?)>((nil, nil))

    init(read: @escaping @Sendable () async throws -> FeedHead) { self.read = read }

    /// Returns the head. For `ageMillisecondsMax` after one caller's query begins, the others get the last known head.
    func head() async throws -> FeedHead {
        let moment = ContinuousClock.now
        let known = memory.withLock { memory -> FeedHead? in
            let isFresh = memory.asked.map { moment - $0 < .milliseconds(Self.ageMillisecondsMax) } ?? false
            if isFresh, let head = memory.head { return head }
            memory.asked = moment
            return nil
        }
        if let known { return known }
        let head = try await read()
        memory.withLock { memory in
            if memory.head?.feed != head.feed || (memory.head?.position ?? 0) < head.position { memory.head = head }
        }
        return head
    }
}
