import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Logging
import Subscriptions
import TestSupport
import Testing

@testable import Server
@testable import Tracking

@Suite("Webhooks are added, looked at, changed and removed over HTTP")
struct WebhookRouteTests {
    private static let path = "/v1/webhooks"

    private func serving(
        _ body: @escaping @Sendable (ServedLedger, any TestClientProtocol) async throws -> Void
    ) async throws {
        try await ServedLedger.with { served in
            let tracker = Tracker(
                ledger: served.ledger, appStore: .answering(nil), options: TrackerOptions(), logger: .quiet,
                webhookSender: WebhookSender { call in
                    call.url.contains("away")
                        ? .failed(WebhookFailure(status: 503, reason: "It answered 503.")) : .delivered
                })
            try await Serving.with(tracker) { client in try await body(served, client) }
        }
    }

    @Test("From the first to the last call about a webhook")
    func life() async throws {
        try await serving { served, client in
            let secret = served.secret
            let added = try await client.send(
                .post, Self.path, secret: secret,
                body:
                    #"{"url":"https://example.com/hook?token=1","app":"com.example.app","kinds":["refund.granted","trial.started","refund.granted"]}"#
            )
            #expect(added.status == .created)
            let body = try AnswerBody(added)
            #expect(body.text("secret")?.hasPrefix("whsec_") == true && body.text("url") == "https://example.com/hook")
            let kinds = try await served.ledger.webhooks.all().first?.kinds
            #expect(kinds == ["trial.started", "refund.granted"])
            let one = "\(Self.path)/\(body.text("webhook_id") ?? "")"
            let shown = try AnswerBody(try await client.send(.get, one, secret: secret))
            #expect(shown.list("waiting_events")?.isEmpty == true && shown.text("secret") == nil)
            let all = try AnswerBody(try await client.send(.get, Self.path, secret: secret))
            #expect(all.list("webhooks")?.count == 1)
            let off = try await client.send(.patch, one, secret: secret, body: #"{"state":"off","concurrency":3}"#)
            #expect(try AnswerBody(off).text("state") == "off")
            let rotated = try AnswerBody(
                try await client.send(.post, one + ":rotate-secret", secret: secret, body: "{}"))
            #expect(rotated.text("secret")?.hasPrefix("whsec_") == true)
            #expect(
                try AnswerBody(try await client.send(.get, one, secret: secret)).flag("has_previous_secret") == true)
            let ended = try AnswerBody(
                try await client.send(.post, one + ":rotate-secret", secret: secret, body: #"{"finish":true}"#))
            #expect(ended.text("secret") == nil)
            let tested = try AnswerBody(try await client.send(.post, one + ":test", secret: secret, body: "{}"))
            #expect(tested.flag("delivered") == true)
            let replayed = try await client.send(
                .post, one + ":replay", secret: secret, body: #"{"from":"beginning"}"#)
            #expect(try AnswerBody(replayed).integer("position") == 0)
            #expect(try await client.send(.delete, one, secret: secret).status == .ok)
            try expectProblem(try await client.send(.get, one, secret: secret), "not-found", status: 404)
            let log = try await served.ledger.webhooks.all()
            #expect(log.isEmpty)
        }
    }

    @Test("A key needs the scope admin, and a key of one app sees only that app's")
    func scopes() async throws {
        try await serving { served, client in
            for scope in [Scope.read, .write] {
                let key = try await served.key(scope)
                try expectProblem(try await client.send(.get, Self.path, secret: key), "forbidden", status: 403)
            }
            let own = try await served.key(.admin, for: "com.example.other")
            let id = try await served.ledger.webhooks.add(url: "https://example.com/", app: ServedLedger.app).webhook.id
            #expect(
                try AnswerBody(try await client.send(.get, Self.path, secret: own)).list("webhooks")?.isEmpty == true)
            try expectProblem(
                try await client.send(.delete, "\(Self.path)/\(id)", secret: own), "not-found", status: 404)
            let foreign = #"{"url":"https://example.com/","app":"com.example.app"}"#
            try expectProblem(
                try await client.send(.post, Self.path, secret: own, body: foreign), "unknown-app", status: 404)
            let added = try await client.send(.post, Self.path, secret: own, body: #"{"url":"https://example.com/"}"#)
            #expect(try AnswerBody(added).text("app") == "com.example.other")
        }
    }

    @Test(
        "What cannot be is 400 with what to do",
        arguments: [
            #"{"url":"ftp://example.com/"}"#, #"{"url":"http://example.com@169.254.169.254/"}"#,
            #"{"url":"https://169.254.169.254/"}"#, #"{"url":"https://example.com/","kinds":["renewed"]}"#,
            #"{"url":"https://example.com/","kinds":[]}"#, #"{"url":"https://example.com/","concurrency":0}"#,
            #"{"url":"https://example.com/","secret":"whsec_c2hvcnQ="}"#, #"{"url":"https://example.com/","from":99}"#,
            #"{"url":"https://example.com/","from":"later"}"#,
            #"{"url":"https://example.com/","from":"2999-01-01T00:00:00Z"}"#,
            #"{"url":"https://example.com/","from":"2026-01-01T00:00:00"}"#,
            #"{"url":"https://example.com/","from":"2026-01-01"}"#,
            #"{"url":"https://example.com/","environment":"Test"}"#,
            #"{"url":"https://example.com/","filter":"x"}"#, #"{}"#,
            #"{"url":"https://example.com/","concurrency":1e400}"#,
            #"{"url":"https://example.com/","from":99999999999999999999}"#,
            #"{"url":"https://example.com/","from":"5"}"#,
        ])
    func badInput(body: String) async throws {
        try await serving { served, client in
            try expectProblem(
                try await client.send(.post, Self.path, secret: served.secret, body: body), "invalid", status: 400)
            #expect(try await served.ledger.webhooks.all().isEmpty)
        }
    }
}
