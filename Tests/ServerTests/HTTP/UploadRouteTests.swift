import Foundation
import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("Uploads are answered under load, and while Apple is slow") struct UploadRouteTests {
    @Test("Many uploads of one receipt make one call")
    func oneCallHoweverManyUploads() async throws {
        try await ServedLedger.with { served in
            let store = ScriptedStore(saying: Sample.verified(), after: .seconds(0.5))
            let tracker = Tracker.quiet(served.ledger, appStore: store.client)
            try await Serving.with(tracker) { client in
                let body = Sample.upload(Sample.receipt())
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<20 {
                        group.addTask {
                            try await client.send(.post, Serving.receipts, secret: served.secret, body: body).status
                                .code
                        }
                    }
                    return try await group.reduce(into: [Int]()) { $0.append($1) }
                }
                #expect(statuses == [Int](repeating: 200, count: 20))
                #expect(store.callCount == 1)
                #expect(try await served.ledger.customers.receipts().count == 1)
                let rows = try await served.ledger.customers.entitlements(app: ServedLedger.app, customer: "kim")
                #expect(rows.first?.granted == true)
            }
        }
    }

    @Test("A signed transaction and a bare id need the app's server key; what to do is said, and nothing is stored")
    func noServerKey() async throws {
        try await ServedLedger.with { served in
            let store = ScriptedStore(saying: Sample.verified())
            try await Serving.with(Tracker.quiet(served.ledger, appStore: store.client)) { client in
                for subject in [#""transaction_id":"1""#, #""signed_transaction":"e30.e30.AAAA""#] {
                    let response = try await client.send(
                        .post, Serving.receipts, secret: served.secret, body: #"{"customer":"kim",\#(subject)}"#)
                    try expectProblem(response, "conflict", status: 409)
                    #expect(try AnswerBody(response).text("detail")?.contains("perennial app server-key") == true)
                    #expect(try AnswerBody(response).text("title") == "What is stored rules this out")
                }
                #expect(try await served.ledger.customers.receipts().isEmpty && store.callCount == 0)
            }
        }
    }

    /// Another process asks about the receipt: it is waited for, no longer than Apple is.
    @Test("A check by another process is waited for, no longer than Apple is", arguments: [(0.3, 200), (60, 202)])
    func anotherProcessAsks(leaseSeconds: Double, status: Int) async throws {
        try await ServedLedger.with { served in
            let tracker = Tracker.quiet(served.ledger, appStore: .answering(Sample.verified()))
            var limits = ServerLimits()
            limits.submission.answerSeconds = 1.5
            let server = HTTPServer(
                tracker: tracker, logger: .quiet, limits: limits,
                keys: KeyCache { try await served.ledger.apps.key(withSecret: $0) })
            try await server.application.test(.router) { client in
                func send() async throws -> TestResponse {
                    try await client.send(
                        .post, Serving.receipts, secret: served.secret, body: Sample.upload(Sample.receipt()))
                }
                #expect(try await send().status == .ok)
                let receipt = try #require(try await served.ledger.customers.receipts().first)
                let other = try await served.ledger.claims.startWorker(host: "other", process: 1)
                _ = try await served.ledger.claims.claim(receipt.id, for: other, leaseSeconds: leaseSeconds)
                let answer = try await send()
                #expect(answer.status.code == status)
                guard status == 202 else { return }
                // It sends no heartbeats, so nobody takes the receipt before the lease ends.
                #expect((50...60).contains(try AnswerBody(answer).integer("retry_after_s") ?? 0))
                try await served.run(
                    "UPDATE ledger.worker SET started_at = now() - interval '1 min' WHERE worker_id = \(other.number)")
                try await served.ledger.claims.heartbeat(other)
                #expect(try AnswerBody(try await send()).integer("retry_after_s") == 5, "it is at work")
            }
        }
    }

    /// How often each prepared statement ran, in the only session for reads and the only one for transactions.
    private func runs(in database: Database) async throws -> [String: Int] {
        let statement = Statement(
            name: "test_runs",
            sql: """
                SELECT statement, (generic_plans + custom_plans)::bigint AS runs FROM pg_prepared_statements
                """)
        let read = try await database.query(statement)
        let written = try await database.transaction { try $0.query(statement) }
        let beginnings = [
            "apps": "-- Returns every app that was not removed", "contents": "-- Upload: returns what receipt $1 holds",
            "deliveries": "-- Upload: returns what the purchases ($1)", "order": "-- Orders: returns order $2",
        ]
        return try (read + written).reduce(into: [:]) { runs, row in
            let text = try row.text("statement")
            for (name, beginning) in beginnings where text.hasPrefix(beginning) {
                runs[name, default: 0] += Int(try row.int8("runs"))
            }
        }
    }

    @Test("A verified upload reads all apps once, and what the receipt holds once", arguments: [true, false])
    func statements(forAnOrder: Bool) async throws {
        try await withMigratedDatabase(connections: 1) { database, _ in
            let ledger = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: [UInt8](repeating: 7, count: 32)))
            try await ledger.apps.add(ServedLedger.app, secret: "secret", callsPerSecond: 0)
            let secret = try await ledger.apps.createKey(
                scope: .admin, for: nil, rate: RequestRate(perSecond: 0)
            ).secret
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            try await ledger.apps.applyCatalog([coins], to: ServedLedger.app)
            var request = OrderRequest(customer: "kim", productID: "coins")
            request.quantity = 2
            let order = try await ledger.orders.place(request, of: ServedLedger.app, requestKey: "k")
            let store = ScriptedStore(
                saying: PurchaseRouteTests.bought([("p", "coins", forAnOrder ? order.appAccountToken : "")]))
            try await Serving.with(Tracker.quiet(ledger, appStore: store.client)) { client in
                let before = try await runs(in: database)
                let more = forAnOrder ? #","purpose":"purchase","order":"\#(order.id)""# : ""
                let answer = try await client.send(
                    .post, Serving.receipts, secret: secret,
                    body: #"{"customer":"kim","receipt":"\#(Sample.receipt())"\#(more)}"#)
                #expect(answer.status == .ok, "\(String(buffer: answer.body))")
                #expect(try AnswerBody(answer).text("result") == "succeeded")
                let after = try await runs(in: database)
                let made = after.merging(before) { $0 - $1 }.filter { $0.value != 0 }
                var expected = ["apps": 1, "contents": 1, "deliveries": 1]
                if forAnOrder { expected["order"] = 2 }
                #expect(made == expected)
            }
        }
    }

    /// An upload under a name that was merged into another customer gets the result for that customer.
    @Test("A customer who was merged is found by the old name")
    func aNameThatWasMerged() async throws {
        try await ServedLedger.with { served in
            let tracker = Tracker.quiet(served.ledger, appStore: .answering(Sample.verified()))
            try await Serving.with(tracker) { client in
                func answers(_ receipt: Int, _ customer: String) async throws -> [String?] {
                    let answer = try await client.send(
                        .post, Serving.receipts, secret: served.secret,
                        body: Sample.upload(Sample.receipt(receipt), customer: customer))
                    let subscriptions = try #require(try AnswerBody(answer).list("subscriptions"))
                    return subscriptions.map { ($0["ownership"] as? [String: Any])?["answer"] as? String }
                }
                #expect(try await answers(0, "anonymous") == ["assigned"])
                _ = try await served.ledger.customers.merge(
                    "anonymous", into: "kim", of: ServedLedger.app,
                    deciding: ManualDecision(by: "lee", because: "signed in"))
                #expect(try await answers(1, "anonymous") == ["held"])
            }
        }
    }

    /// Apple does not answer in time: the receipt is handed over, and a worker may claim it at once.
    @Test("An upload is stored and answered while Apple is slow")
    func appleIsSlow() async throws {
        try await ServedLedger.with { served in
            let store = ScriptedStore(saying: Sample.verified(), after: .seconds(60))
            var tracker = Tracker.quiet(served.ledger, appStore: store.client)
            var limits = ServerLimits()
            limits.submission.answerSeconds = 0.2
            let server = HTTPServer(
                tracker: tracker, logger: .quiet, limits: limits,
                keys: KeyCache { try await served.ledger.apps.key(withSecret: $0) })
            try await server.application.test(.router) { client in
                let answer = try await client.send(
                    .post, Serving.receipts, secret: served.secret, body: Sample.upload(Sample.receipt()))
                #expect(answer.status == .accepted)
                #expect(try AnswerBody(answer).text("outcome") == "pending")
            }
            #expect(store.callCount == 1)
            tracker = Tracker.quiet(served.ledger, appStore: .answering(Sample.verified()))
            let receipt = try #require(try await served.ledger.customers.receipts().first)
            #expect(try await tracker.check(receipt.id).outcome == .verified)
        }
    }

    /// The caller goes away during the check, and may leave the lease behind: the next caller checks all the same.
    @Test("A caller who goes away blocks no other caller")
    func whoeverGoesAwayBlocksNobody() async throws {
        try await ServedLedger.with { served in
            let store = ScriptedStore(saying: Sample.verified(), after: .seconds(600))
            let tracker = Tracker.quiet(served.ledger, appStore: store.client)
            let submission = Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt())
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = try? await tracker.submit(submission) }
                while store.callCount == 0 { try await Task.sleep(for: .milliseconds(1)) }
                store.say(Sample.verified())
                group.cancelAll()
                try await group.waitForAll()
            }
            guard case .settled(let settled, _) = try await tracker.submit(submission) else {
                Issue.record("the lease of the one who went away is in the way")
                return
            }
            #expect(settled.outcome == .verified)
        }
    }

    @Test("A customer uploads ten new receipts an hour at most")
    func tenNewReceiptsAnHour() async throws {
        try await ServedLedger.with { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                func send(_ number: Int, _ customer: String) async throws -> TestResponse {
                    try await client.send(
                        .post, Serving.receipts, secret: served.secret,
                        body: Sample.upload(Sample.receipt(number), customer: customer))
                }
                for number in 0..<10 { #expect(try await send(number, "kim").status == .accepted) }
                let refused = try await send(10, "kim")
                try expectProblem(refused, "too-many", status: 429)
                let seconds = try #require(refused.headers[.retryAfter].flatMap(Int.init))
                #expect((3500...3600).contains(seconds))
                #expect(try await send(0, "kim").status == .accepted)
                #expect(try await send(10, "lee").status == .accepted)
                #expect(try await served.ledger.customers.receipts().count == 11)
            }
        }
    }

    @Test("The audit names the key of each upload")
    func whoSentItIsRemembered() async throws {
        try await ServedLedger.with { served in
            let key = try await served.ledger.apps.createKey(scope: .write, for: ServedLedger.app)
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                _ = try await client.send(
                    .post, Serving.receipts, secret: key.secret, body: Sample.upload(Sample.receipt()))
            }
            let rows = try await served.database.query(
                .init(name: "audit", sql: "SELECT actor, action, customer, detail FROM perennial.audit_log"))
            #expect(rows.count == 1)
            #expect(try rows.first?.text("actor") == "key \(key.id)")
            #expect(try rows.first?.text("action") == "receipt.stored" && rows.first?.text("customer") == "kim")
        }
    }

    @Test("Only a body that is called JSON is read")
    func whatABodyIsCalled() async throws {
        let types = [
            ("application/json", 202), ("application/json; charset=utf-8", 202), ("Application/JSON", 202),
            ("application/vnd.example+json", 202), ("text/plain", 415), ("application/x-www-form-urlencoded", 415),
            ("application/jsonp", 415), ("multipart/form-data; boundary=x", 415),
        ]
        try await ServedLedger.with { served in
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for (number, (type, status)) in types.enumerated() {
                    let answer = try await client.send(
                        .post, Serving.receipts, secret: served.secret, body: Sample.upload(Sample.receipt(number)),
                        headers: [.contentType: type])
                    #expect(answer.status.code == status, "\(type)")
                    guard status == 415 else { continue }
                    try expectProblem(answer, "unsupported-media", status: 415)
                    #expect(answer.headers[.accept] == "application/json", "\(type)")
                }
            }
        }
    }
}
