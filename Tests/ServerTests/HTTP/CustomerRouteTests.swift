import Foundation
import Hummingbird
import HummingbirdTesting
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

/// The tests that use it only read.
private let subscribed: OncePerSuite<ServedLedger> = OncePerSuite(CustomerRouteTests.withSubscription)

@Suite("The customer routes answer about one customer and about many", subscribed) struct CustomerRouteTests {
    private static let batch = "/v1/apps/com.example.app/entitlements:batch"

    /// A ledger for which Apple has vouched for a subscription of kim.
    fileprivate static func withSubscription(
        _ body: @escaping @Sendable (ServedLedger) async throws -> Void
    ) async throws {
        try await ServedLedger.with { served in
            let tracker = Tracker.quiet(served.ledger, appStore: .answering(Sample.verified()))
            try await Serving.with(tracker) { client in
                let answer = try await client.send(
                    .post, Serving.receipts, secret: served.secret, body: Sample.upload(Sample.receipt()))
                #expect(answer.status == .ok)
            }
            try await body(served)
        }
    }

    /// A server of its own on the suite's ledger, which is only read.
    private func reading(
        _ body: @escaping @Sendable (ServedLedger, any TestClientProtocol) async throws -> Void
    ) async throws {
        try await subscribed.use { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { try await body(served, $0) }
        }
    }

    @Test("Customers are answered in the order of the question")
    func inTheOrderOfTheQuestion() async throws {
        try await reading { served, client in
            let body = #"{"customers":["unknown-customer","kim","lee","kim"]}"#
            let answer = try AnswerBody(
                await client.send(.post, Self.batch, secret: served.secret, body: body))
            #expect(answer.names == ["app", "at", "known_at", "customers"])
            let customers = try #require(answer.list("customers"))
            #expect(customers.map { $0["customer"] as? String } == ["unknown-customer", "kim", "lee", "kim"])
            let rights = customers.map { ($0["entitlements"] as? [[String: Any]])?.count }
            #expect(rights == [0, 1, 0, 1])
            #expect(customers[1]["stale"] as? Bool == false)
            // Until tomorrow, when it ends, and two and a half minutes more.
            let seconds = try #require(customers[1]["max_age_s"] as? Int)
            #expect((86_000...86_600).contains(seconds))
            #expect(customers[0]["max_age_s"] is NSNull)
            let single = try AnswerBody(await client.send(.get, Serving.entitlements, secret: served.secret))
            let (one, other) = (
                single.list("entitlements")?.first, (customers[1]["entitlements"] as? [[String: Any]])?.first
            )
            #expect(one?["until"] as? String == other?["until"] as? String && one?["until"] != nil)
        }
    }

    @Test("A question names a thousand customers and no more")
    func aThousandAndNoMore() async throws {
        try await reading { served, client in
            func body(_ count: Int) -> String {
                #"{"customers":["# + (0..<count).map { "\"c\($0)\"" }.joined(separator: ",") + #"],"at":null}"#
            }
            let fits = try await client.send(.post, Self.batch, secret: served.secret, body: body(1000))
            #expect(try AnswerBody(fits).list("customers")?.count == 1000)
            let bad = [
                body(1001), body(0), #"{"customers":[""]}"#, #"{"customers":["a\u0000b"]}"#, #"{"customers":[1]}"#,
                #"{"customers":null}"#, "{}", #"{"customers":["a"],"at":"yesterday"}"#,
                #"{"customers":["a"],"known_at":"99999-01-01T00:00:00Z"}"#,
                #"{"customers":["a"],"at":"2026-01-01T00:00:00"}"#, #"{"customers":["a"],"known_at":"2026-01-01"}"#,
            ]
            for body in bad {
                let answer = try await client.send(.post, Self.batch, secret: served.secret, body: body)
                try expectProblem(answer, "invalid", status: 400)
            }
            let unknown = try await client.send(
                .post, "/v1/apps/com.example.none/entitlements:batch", secret: served.secret,
                body: #"{"customers":["a"]}"#)
            try expectProblem(unknown, "unknown-app", status: 404)
        }
    }

    @Test("The record of a customer is whole")
    func aCustomersRecord() async throws {
        try await reading { served, client in
            let path = "/v1/apps/com.example.app/customers/kim"
            let body = try AnswerBody(await client.send(.get, path, secret: served.secret))
            #expect(
                body.names == [
                    "app", "customer", "subscriptions", "purchases", "balances", "timeline", "unverified_receipts",
                ])
            #expect(body.list("balances")?.isEmpty == true)
            let subscription = try #require(body.list("subscriptions")?.first)
            #expect(subscription["state"] as? String == "active" && subscription["product_id"] as? String == "monthly")
            #expect(body.list("purchases")?.isEmpty == true)
            let spans = try #require(body.list("timeline"))
            #expect(spans.compactMap { $0["state"] as? String } == ["active", "awaiting_renewal", "expired"])
            #expect(spans.last?["until"] is String == false && spans.first?["from"] is String)
            for (one, next) in zip(spans, spans.dropFirst()) {
                #expect(one["until"] as? String == next["from"] as? String)
            }
            #expect(body.object("unverified_receipts")?["count"] as? Int == 0)
        }
    }

    @Test("An unverified receipt is shown as such")
    func whatIsNotVerifiedYet() async throws {
        try await ServedLedger.with { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                let sent = try await client.send(
                    .post, Serving.receipts, secret: served.secret, body: Sample.upload(Sample.receipt()))
                #expect(sent.status == .accepted)
                let ends = Instant(iso8601: "2099-01-01T00:00:00Z")
                _ = try await Tracker.quiet(served.ledger).store([
                    Submission(
                        bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt(1), imported: true,
                        provisional: Provisional(productID: "monthly", until: try #require(ends)))
                ])
                let path = "/v1/apps/com.example.app/customers/kim"
                let body = try AnswerBody(await client.send(.get, path, secret: served.secret))
                #expect(body.object("unverified_receipts")?["count"] as? Int == 2)
                #expect(body.object("unverified_receipts")?["provisional_until"] is String)
                #expect(body.list("subscriptions")?.isEmpty == true)
                let rights = try AnswerBody(await client.send(.get, Serving.entitlements, secret: served.secret))
                let right = try #require(rights.list("entitlements")?.first)
                #expect(right["basis"] as? String == "provisional" && right["granted"] as? Bool == true)
                #expect(right["state"] as? String == "active" && right["until"] is String)
                #expect(right["as_of"] is String == false && right["checked_at"] is String == false)
                let stranger = try AnswerBody(await client.send(.get, path + "x", secret: served.secret))
                #expect(stranger.object("unverified_receipts")?["count"] as? Int == 0)
                #expect(stranger.list("timeline")?.isEmpty == true)
                let unknown = try await client.send(
                    .get, "/v1/apps/com.example.none/customers/kim", secret: served.secret)
                try expectProblem(unknown, "unknown-app", status: 404)
            }
        }
    }

    /// What was known before an answer came does not tell that answer's clocks.
    @Test("A lookup of the past does not show the clocks of today")
    func thePastDoesNotTellTheClocksOfToday() async throws {
        try await Self.withSubscription { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                let now = try AnswerBody(await client.send(.get, Serving.entitlements, secret: served.secret))
                let first = try #require(now.list("entitlements")?.first)
                #expect(first["checked_at"] is String && first["as_of"] is String)
                let known = try await served.ledger.now()
                try await served.run(
                    "UPDATE ledger.subscription SET as_of = now() + interval '1 minute', checked_at = now() + interval '1 minute'"
                )
                let path = Serving.entitlements + "?known_at=" + known.iso8601
                let past = try AnswerBody(await client.send(.get, path, secret: served.secret))
                let then = try #require(past.list("entitlements")?.first)
                #expect(then["granted"] as? Bool == true)
                #expect(then["checked_at"] is String == false && then["as_of"] is String == false)
            }
        }
    }
}
