import AppStore
import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Server
@testable import Tracking

@Suite("POST /v1/notifications/{token} keeps Apple's notifications")
struct NotificationRouteTests {
    private func withAddress(
        _ body: @escaping @Sendable (any TestClientProtocol, SubscriptionLedger, Tracker, String) async throws -> Void
    ) async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: [UInt8](repeating: 7, count: 32)))
            try await ledger.apps.add("com.example.app", secret: "shared secret")
            let token = try await ledger.apps.openNotifications(of: "com.example.app")
            let tracker = Tracker.quiet(ledger)
            try await Serving.with(tracker) { client in
                try await body(client, ledger, tracker, "/v1/notifications/\(token.text)")
            }
        }
    }

    private func count(_ ledger: SubscriptionLedger) async throws -> Int64 {
        let statement = Statement(name: "", sql: "SELECT count(*) AS n FROM ledger.notification")
        return try await #require(ledger.database.query(statement).first).int8("n")
    }

    @Test("Apple's two bodies are kept and answered with 200, without a key")
    func accepted() async throws {
        try await withAddress { client, ledger, _, path in
            for body in [NotificationBodyTests.versionTwo, #"{"notification_type":"CANCEL","password":"s3cret"}"#] {
                let response = try await client.send(.post, path, body: body)
                #expect(response.status == .ok, "\(String(buffer: response.body))")
            }
            // The address in App Store Connect may have a slash at its end.
            let again = try await client.send(.post, path + "/", body: NotificationBodyTests.versionTwo)
            #expect(try AnswerBody(again).text("effect") == "repeated")
            #expect(try await count(ledger) == 2)
            let kept = Statement(
                name: "", sql: "SELECT string_agg(body::text, ' ') AS bodies FROM ledger.notification")
            let bodies = try await #require(ledger.database.query(kept).first).text("bodies")
            #expect(bodies.contains(NotificationBodyTests.versionTwo) && !bodies.contains("s3cret"))
        }
    }

    @Test(
        "Version 1 with the app's secret is a reason to ask, and its receipt is no upload; with another password nothing is asked"
    )
    func versionOne() async throws {
        try await withAddress { client, ledger, _, path in
            func post(_ password: String) async throws -> AnswerBody {
                let body =
                    #"{"notification_type":"DID_RENEW","password":"\#(password)","unified_receipt":{"latest_receipt":"#
                    + #""\#(Sample.receipt())"}}"#
                return try AnswerBody(try await client.send(.post, path, body: body))
            }
            func receipts() async throws -> [String] {
                let statement = Statement(
                    name: "",
                    sql:
                        "SELECT s.lane::text AS lane FROM ledger.receipt JOIN ledger.poll_schedule s USING (receipt_id)"
                )
                return try await ledger.database.query(statement).map { try $0.text("lane") }
            }
            let wrong = try await post("shared secret ")
            #expect(wrong.text("effect") == "wrong_password")
            #expect(wrong.text("verification") == "unverified")
            #expect(try await receipts() == [])
            let right = try await post("shared secret")
            #expect(right.text("effect") == "no_subscription")
            #expect(right.text("verification") == "password")
            #expect(try await receipts() == [], "it is a reason to ask, and its receipt is no upload")
        }
    }

    @Test(
        "Version 1 about a known subscription has the receipt asked about that polls it, and stores no receipt of its own"
    )
    func versionOneOfKnown() async throws {
        try await withAddress { client, ledger, _, path in
            let tracker = Tracker.quiet(ledger, appStore: .answering(Sample.verified()))
            let upload = Submission(bundleID: "com.example.app", customer: "kim", receipt: Sample.receipt())
            let receipt = try #require(try await tracker.store([upload]).first?.get()).receiptID
            _ = try await tracker.check(receipt)
            let sql = """
                SELECT concat_ws(' ', (SELECT count(*) FROM ledger.receipt), (SELECT count(*) FROM ledger.upload),
                                 s.lane, s.due_at < now() + interval '61 s', s.follow_ups) AS line
                FROM ledger.poll_schedule s
                """
            func standing() async throws -> [String] {
                try await ledger.database.query(Statement(name: "", sql: sql)).map { try $0.text("line") }
            }
            #expect(try await standing() == ["1 1 expiring f 0"])
            try await ledger.database.transaction {
                try $0.script("UPDATE ledger.poll_schedule SET lane = 'sweep', due_at = now() + interval '2 days'")
            }
            let body = """
                {"notification_type":"CANCEL","password":"shared secret","environment":"PROD","unified_receipt":{
                 "latest_receipt":"\(Sample.receipt(1))","latest_receipt_info":[{"original_transaction_id":"100",
                  "transaction_id":"101","product_id":"monthly","purchase_date_ms":"1","expires_date_ms":"2"}]}}
                """
            let answer = try AnswerBody(try await client.send(.post, path, body: body))
            #expect(answer.text("verification") == "password" && answer.text("effect") == "pulled")
            #expect(try await standing() == ["1 1 retry t 0"])
        }
    }

    @Test("A stranger's address is 404 and a strange body 400; nothing is kept of either")
    func refused() async throws {
        try await withAddress { client, ledger, _, path in
            let wrong = String(path.dropLast()) + (path.hasSuffix("0") ? "1" : "0")
            for stranger in [
                wrong, "/v1/notifications/x",
                path.uppercased().replacing("/V1/NOTIFICATIONS", with: "/v1/notifications") + "0",
                "/v1/notifications/%00",
            ] {
                let response = try await client.send(.post, stranger, body: NotificationBodyTests.versionTwo)
                #expect([400, 404].contains(response.status.code), "\(stranger)")
            }
            try expectProblem(
                try await client.send(.post, wrong, body: NotificationBodyTests.versionTwo), "not-found", status: 404)
            try expectProblem(try await client.send(.post, path, body: "{}"), "invalid", status: 400)
            try expectProblem(try await client.send(.get, path), "method-not-allowed", status: 405)
            let large = #"{"notification_type":"\#(String(repeating: "x", count: PostNotification.bodyBytesMax))"}"#
            try expectProblem(try await client.send(.post, path, body: large), "too-large", status: 413)
            #expect(try await count(ledger) == 0)
        }
    }

    @Test("Notifications beyond the limit are refused with a time to come back")
    func tooMany() async throws {
        try await withAddress { _, ledger, tracker, path in
            let start = ContinuousClock.now
            let limiter = RateLimiter<Int32> { start }
            let app = try #require(try await ledger.apps.all().first)
            while limiter.secondsToWait(of: app.id, at: PostNotification.rate) == nil {}
            let router = Router(context: CallerContext.self)
            router.add(middleware: ProblemMiddleware())
            PostNotification(
                tracker: tracker, metrics: MetricsRegistry(), limits: ServerLimits(), limiter: limiter
            ).addRoute(to: router)
            try await Application(router: router, logger: .quiet).test(.router) { client in
                let answer = try await client.send(.post, path, body: NotificationBodyTests.versionTwo)
                try expectProblem(answer, "too-many", status: 429)
                #expect(answer.headers[.retryAfter] == "1")
            }
            #expect(try await count(ledger) == 0)
        }
    }

    @Test("What came is counted by what it did")
    func counted() async throws {
        try await withAddress { client, _, _, path in
            _ = try await client.send(.post, path, body: NotificationBodyTests.versionTwo)
            _ = try await client.send(.post, path, body: NotificationBodyTests.versionTwo)
            let text = String(buffer: try await client.send(.get, "/metrics").body)
            for effect in ["unknown", "repeated"] {
                let line =
                    "perennial_notifications_total{app=\"com.example.app\",effect=\"\(effect)\",version=\"2\"} 1\n"
                #expect(text.contains(line))
            }
            #expect(!text.contains(path.split(separator: "/").last ?? "/"))
        }
    }
}
