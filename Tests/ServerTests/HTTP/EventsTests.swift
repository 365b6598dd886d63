import AppStore
import Foundation
import Hummingbird
import HummingbirdTesting
import Subscriptions
import TestSupport
import Testing

@testable import Server
@testable import Tracking

/// The tests that use it add no event.
private let eventful: OncePerSuite<ServedLedger> = OncePerSuite(EventsTests.withEvents)

@Suite("The feed of events is read over HTTP from a cursor", eventful) struct EventsTests {
    /// A ledger that has verified a receipt for each given app and customer, one event or two each.
    fileprivate static func withEvents(
        _ body: @escaping @Sendable (ServedLedger) async throws -> Void
    ) async throws {
        try await ServedLedger.with { served in
            for (app, customer, number) in [("com.example.app", "kim", 1), ("com.example.other", "lee", 2)] {
                let store = AppStoreClient.answering(Sample.verified(subscription: "\(number)00", app: app))
                try await Serving.with(Tracker.quiet(served.ledger, appStore: store)) { client in
                    let answer = try await client.send(
                        .post, "/v1/apps/\(app)/receipts", secret: served.secret,
                        body: Sample.upload(Sample.receipt(number), customer: customer))
                    #expect(answer.status == .ok, "\(String(buffer: answer.body))")
                }
            }
            try await body(served)
        }
    }

    /// A server on a ledger of its own, with events.
    private func serving(
        _ body: @escaping @Sendable (ServedLedger, any TestClientProtocol) async throws -> Void
    ) async throws {
        try await Self.withEvents { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { try await body(served, $0) }
        }
    }

    /// A server of its own on the suite's ledger, where no event is added.
    private func reading(
        _ body: @escaping @Sendable (ServedLedger, any TestClientProtocol) async throws -> Void
    ) async throws {
        try await eventful.use { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { try await body(served, $0) }
        }
    }

    @Test("The feed is read from its start")
    func theFeedFromItsStart() async throws {
        try await reading { served, client in
            let page = try AnswerBody(await client.send(.get, "/v1/events", secret: served.secret))
            #expect(page.names == ["feed", "events", "position", "more"])
            let events = try #require(page.list("events"))
            #expect(events.map { $0["position"] as? Int } == Array(1...events.count))
            #expect(page.integer("position") == events.count && page.flag("more") == false)
            #expect(events.first?["kind"] as? String == "subscription.started")
            #expect(Set(events.compactMap { $0["app"] as? String }) == ["com.example.app", "com.example.other"])
            var (position, seen, feed) = (0, 0, try #require(page.text("feed")))
            while true {
                let path = "/v1/events?after=\(position)&feed=\(feed)&limit=1"
                let one = try AnswerBody(await client.send(.get, path, secret: served.secret))
                guard let event = one.list("events")?.first else { break }
                (position, seen) = (try #require(event["position"] as? Int), seen + 1)
                #expect(one.flag("more") == (position < events.count))
                feed = feed.uppercased()
            }
            #expect(seen == events.count)
        }
    }

    @Test("A key of one app reads no events of another")
    func nothingOfAnotherAppIsTold() async throws {
        try await reading { served, client in
            let secret = try await served.key(.read, for: "com.example.other")
            let response = try await client.send(.get, "/v1/events", secret: secret)
            let page = try AnswerBody(response)
            let events = try #require(page.list("events"))
            #expect(!events.isEmpty && events.allSatisfy { $0["app"] as? String == "com.example.other" })
            let text = String(buffer: response.body)
            #expect(!text.contains("com.example.app") && !text.contains("kim"))
            let all = try await served.ledger.feed.head().position
            #expect(page.integer("position").map(Int64.init) == all && page.flag("more") == false)
        }
    }

    @Test("A cursor of another feed is refused")
    func aCursorOfAnotherFeed() async throws {
        try await reading { served, client in
            let head = try await served.ledger.feed.head()
            for query in [
                "after=0&feed=00000000-0000-0000-0000-000000000000", "feed=\(UUID())",
                "after=\(head.position + 1)&feed=\(head.feed)", "after=\(head.position + 1)",
                "after=999999999999999999",
            ] {
                let answer = try await client.send(.get, "/v1/events?\(query)", secret: served.secret)
                try expectProblem(answer, "other-feed", status: 409)
                #expect(try AnswerBody(answer).text("feed") == head.feed)
            }
            for query in [
                "after=-1", "after=x", "after=", "after=1000000000000000000", "limit=0", "wait=-1", "wait=1.5",
            ] {
                let answer = try await client.send(.get, "/v1/events?\(query)", secret: served.secret)
                try expectProblem(answer, "invalid", status: 400)
            }
            let many = try await client.send(.get, "/v1/events?limit=99999&wait=0", secret: served.secret)
            #expect(many.status == .ok)
        }
    }

    /// A server that runs before any worker does.
    @Test("A cursor from before a restore is refused")
    func aCursorFromBeforeARestore() async throws {
        try await serving { served, client in
            let before = try await served.ledger.feed.head()
            try await served.run(
                """
                ALTER TABLE ledger.feed DISABLE TRIGGER renewed_elsewhere;
                UPDATE ledger.feed SET place = 'elsewhere';
                ALTER TABLE ledger.feed ENABLE TRIGGER renewed_elsewhere;
                """)
            for after in [0, before.position] {
                let path = "/v1/events?after=\(after)&feed=\(before.feed)"
                let refused = try await client.send(.get, path, secret: served.secret)
                try expectProblem(refused, "other-feed", status: 409)
                let anew = try #require(try AnswerBody(refused).text("feed"))
                #expect(anew != before.feed)
                let page = try await client.send(.get, "/v1/events?after=\(after)&feed=\(anew)", secret: served.secret)
                #expect(page.status == .ok)
            }
            let journal = Journal()
            let tracker = Tracker(
                ledger: served.ledger, appStore: .answering(nil), options: TrackerOptions(),
                logger: journal.logger)
            for _ in 0..<2 { await tracker.checkFeedPlace() }
            let lines = journal.lines.filter { $0.contains("the feed has a new id") }
            #expect(lines.count == 1 && lines.first?.contains(before.feed) == true, "\(journal.lines)")
        }
    }

    /// Ten wait; the event is placed when all of them do; every one gets it long before their time is over.
    @Test("A waiting caller is answered at once")
    func whoWaitsIsToldAtOnce() async throws {
        try await serving { served, client in
            let head = try await served.ledger.feed.head()
            let path = "/v1/events?after=\(head.position)&feed=\(head.feed)&wait=20"
            let start = ContinuousClock.now
            try await withThrowingTaskGroup(of: Int?.self) { group in
                for _ in 0..<10 {
                    group.addTask {
                        try AnswerBody(await client.send(.get, path, secret: served.secret)).list("events")?.count
                    }
                }
                try await Task.sleep(for: .milliseconds(300))
                let store = AppStoreClient.answering(Sample.verified(subscription: "300"))
                _ = try await Tracker.quiet(served.ledger, appStore: store).submit(
                    Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt(3)))
                for try await count in group { #expect((count ?? 0) > 0) }
            }
            #expect(ContinuousClock.now - start < .seconds(10))
        }
    }

    @Test("Waiting ends without news")
    func waitingEndsWithoutNews() async throws {
        try await reading { served, client in
            let head = try await served.ledger.feed.head()
            let path = "/v1/events?after=\(head.position)&wait=1"
            let page = try AnswerBody(await client.send(.get, path, secret: served.secret))
            #expect(page.list("events")?.isEmpty == true && page.integer("position").map(Int64.init) == head.position)
        }
    }

    /// However many ask at once, the database is asked once a while.
    @Test("However many ask at once, the database is asked once")
    func oneQuestionForAll() async throws {
        let asked = CallCount()
        let watch = FeedWatch {
            await asked.add()
            return FeedHead(feed: "f", position: 1)
        }
        _ = try await watch.head()
        try await withThrowingTaskGroup(of: FeedHead.self) { group in
            for _ in 0..<1000 { group.addTask { try await watch.head() } }
            for try await head in group { #expect(head.position == 1) }
        }
        #expect(await asked.count < 50)
    }
}
