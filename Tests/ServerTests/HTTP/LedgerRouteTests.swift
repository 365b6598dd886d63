import AppStore
import Foundation
import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Server
@testable import Tracking

/// The tests that use it store no receipt in it.
private let withoutReceipts: OncePerSuite<(SubscriptionLedger, String)> = OncePerSuite { lend in
    try await LedgerRouteTests.withLedger { try await lend(($0, $1)) }
}

@Suite("The routes work on a real PostgreSQL", withoutReceipts) struct LedgerRouteTests {
    private static let app = BundleID("com.example.app")

    /// A migrated ledger with two apps, and a key for all of it.
    fileprivate static func withLedger(
        _ body: @escaping @Sendable (SubscriptionLedger, String) async throws -> Void
    ) async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: [UInt8](repeating: 7, count: 32)))
            try await ledger.apps.add(Self.app, secret: "shared secret")
            try await ledger.apps.add("com.example.other")
            try await body(ledger, try await ledger.apps.createKey(scope: .admin, for: nil).secret)
        }
    }

    private func upload(_ receipt: String, customer: String = "kim") -> String {
        #"{"customer":"\#(customer)","receipt":"\#(receipt)","price":"4.99","currency":"USD"}"#
    }

    /// DER of a shape that could be a receipt, in base64.
    private let receipt = Data([0x30, 0x82, 0x01, 0x00] + [UInt8](repeating: 0x2A, count: 256)).base64EncodedString()

    @Test("The server is ready once the schema is there")
    func readyOnceMigrated() async throws {
        try await withTestDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            try await Serving.with(Tracker.quiet(ledger)) { client in
                let before = try await client.send(.get, "/readyz")
                try expectProblem(before, "unavailable", status: 503)
                #expect(try AnswerBody(before).text("detail")?.contains("perennial migrate") == true)
                _ = try await ledger.operations.migrate()
                let after = try await client.send(.get, "/readyz")
                #expect(after.status == .ok && String(buffer: after.body) == #"{"status":"ready"}"#)
            }
        }
    }

    @Test("A server whose account may not read API keys is not ready; a worker, which reads none, is")
    func readyWithRights() async throws {
        try await withMigratedDatabase { database, connectionString in
            try await SubscriptionLedger(database: database).operations.grantRoles()
            let own = Database(
                DatabaseConfiguration(connectionString: connectionString + " options='-c role=perennial_api'")
            ) { print($0) }
            let tracker = Tracker.quiet(SubscriptionLedger(database: own))
            try await Serving.with(tracker) { client in
                #expect(try await client.send(.get, "/readyz").status == .ok)
                try await database.transaction { try $0.script("REVOKE SELECT ON ledger.api_key FROM perennial_api") }
                try expectProblem(try await client.send(.get, "/readyz"), "unavailable", status: 503)
                let lookup = try await client.send(.get, Serving.entitlements, secret: TestKey.read.secret)
                try expectProblem(lookup, "unavailable", status: 503)
            }
            let server = MetricsServer(tracker: tracker, metrics: MetricsRegistry(), host: "127.0.0.1", port: 0)
            let ready = try await server.application.test(.live) { try await $0.send(.get, "/readyz") }
            #expect(ready.status == .ok)
            await own.close()
        }
    }

    @Test("A probe learns soon that the primary is away, however long others wait for it", .timeLimit(.minutes(1)))
    func notReadySoon() async throws {
        try await withoutReceipts.use { ledger, _ in
            let away = Database(
                DatabaseConfiguration(
                    connectionString: "host=127.0.0.1 port=1 user=nobody dbname=nothing", connectTimeoutSeconds: 40)
            ) { _ in }
            for standby in [nil, ledger.database] {
                let start = ContinuousClock.now
                try await Serving.with(Tracker.quiet(SubscriptionLedger(database: away, reads: standby))) { client in
                    let answer = try await client.send(.get, "/readyz")
                    #expect(ContinuousClock.now - start < .seconds(20))
                    if standby == nil {
                        try expectProblem(answer, "unavailable", status: 503)
                    } else {
                        #expect(answer.status == .ok)
                        #expect(try AnswerBody(answer).text("primary") == "away")
                    }
                }
            }
            await away.close()
        }
    }

    @Test("Keys of the ledger open the routes")
    func keysOfTheLedger() async throws {
        try await withoutReceipts.use { ledger, _ in
            let read = try await ledger.apps.createKey(scope: .read, for: Self.app)
            let revoked = try await ledger.apps.createKey(scope: .admin, for: nil)
            try await ledger.apps.revokeKey(revoked.id)
            try await Serving.with(Tracker.quiet(ledger)) { client in
                let table = [
                    (read.secret, "com.example.app", 200), (read.secret, "com.example.other", 403),
                    (revoked.secret, "com.example.app", 401), (read.secret, "com.example.app", 200),
                ]
                for (secret, app, status) in table {
                    let path = "/v1/apps/\(app)/customers/kim/entitlements"
                    let response = try await client.send(.get, path, secret: secret)
                    #expect(response.status.code == status)
                }
                let body = upload(receipt)
                let post = try await client.send(.post, Serving.receipts, secret: read.secret, body: body)
                #expect(post.status == .forbidden)
            }
        }
    }

    @Test("An unknown customer has no entitlements")
    func aCustomerNobodyKnows() async throws {
        try await withoutReceipts.use { ledger, secret in
            try await Serving.with(Tracker.quiet(ledger)) { client in
                let response = try await client.send(.get, Serving.entitlements, secret: secret)
                let body = try AnswerBody(response)
                #expect(response.status == .ok && body.list("entitlements")?.isEmpty == true)
                #expect(body.names == ["app", "customer", "at", "known_at", "stale", "max_age_s", "entitlements"])
                #expect(body.text("app") == "com.example.app" && body.text("customer") == "kim")
                #expect(body.flag("stale") == false && body.integer("max_age_s") == nil)
                let tag = try #require(response.headers[.eTag])
                let again = try await client.send(
                    .get, Serving.entitlements, secret: secret, headers: [.ifNoneMatch: tag])
                #expect(again.status == .notModified && again.body.readableBytes == 0 && again.headers[.eTag] == tag)
                let past = "?at=2024-02-29T12:00:00.000Z&known_at=2024-03-01T12:00:00%2B02:00"
                let asked = try AnswerBody(await client.send(.get, Serving.entitlements + past, secret: secret))
                #expect(asked.text("at") == "2024-02-29T12:00:00.000Z")
                #expect(asked.text("known_at") == "2024-03-01T10:00:00.000Z")
            }
            #expect(try await ledger.customers.receipts().isEmpty)
        }
    }

    @Test("An unknown app is refused")
    func anAppNobodyRegistered() async throws {
        try await withoutReceipts.use { ledger, secret in
            try await Serving.with(Tracker.quiet(ledger)) { client in
                let path = "/v1/apps/com.example.nothing"
                try expectProblem(
                    try await client.send(.get, path + "/customers/kim/entitlements", secret: secret),
                    "unknown-app", status: 404)
                let post = try await client.send(.post, path + "/receipts", secret: secret, body: upload(receipt))
                try expectProblem(post, "unknown-app", status: 404)
                #expect(try AnswerBody(post).text("detail")?.contains("com.example.other") == false)
                try expectProblem(
                    try await client.send(.get, path + "/receipts/1", secret: secret), "unknown-app", status: 404)
            }
        }
    }

    @Test("An app that is removed while the server runs is unknown within seconds", .timeLimit(.minutes(2)))
    func anAppThatIsRemoved() async throws {
        try await Self.withLedger { ledger, secret in
            try await Serving.with(Tracker.quiet(ledger)) { client in
                let path = "/v1/apps/com.example.other/customers/kim/entitlements"
                #expect(try await client.send(.get, path, secret: secret).status == .ok)
                try await ledger.apps.remove(
                    "com.example.other", deciding: try ManualDecision(by: "kim", because: "misspelt"))
                let start = ContinuousClock.now
                while try await client.send(.get, path, secret: secret).status == .ok {
                    try await Task.sleep(for: .milliseconds(100))
                }
                #expect(ContinuousClock.now - start < .seconds(30))
                try expectProblem(try await client.send(.get, path, secret: secret), "unknown-app", status: 404)
                #expect(try await client.send(.get, Serving.entitlements, secret: secret).status == .ok)
            }
        }
    }

    @Test("A receipt is stored while Apple is away")
    func aReceiptWhileAppleIsAway() async throws {
        try await Self.withLedger { ledger, secret in
            try await Serving.with(Tracker.quiet(ledger)) { client in
                let response = try await client.send(.post, Serving.receipts, secret: secret, body: upload(receipt))
                #expect(response.status == .accepted)
                let kept = try AnswerBody(response)
                let id = try #require(kept.text("receipt_id"))
                #expect(["pending", "indeterminate"].contains(kept.text("outcome")) && kept.text("reason") != nil)
                let location = try #require(response.headers[.location])
                #expect(location == "/v1/apps/com.example.app/receipts/\(id)")
                let stored = try AnswerBody(await client.send(.get, location, secret: secret))
                #expect(stored.text("receipt_id") == id && stored.text("app") == "com.example.app")
                #expect(
                    ["pending", "indeterminate"].contains(stored.text("outcome")) && stored.text("verified_at") == nil)
                for path in [
                    "/v1/apps/com.example.other/receipts/\(id)", Serving.receipts + "/0", Serving.receipts + "/x",
                ] {
                    try expectProblem(try await client.send(.get, path, secret: secret), "not-found", status: 404)
                }
            }
        }
    }

    /// What the network calls an outage is the operator's to know: it may name hosts.
    @Test("Why Apple is away is for the log")
    func whyAppleIsAwayIsForTheLog() async throws {
        let away = AppStoreClient { _ in
            AppStoreAnswer(
                environment: .production, httpStatus: nil, body: [],
                failure: "The store could not be reached.", failureDetail: "proxy.internal: refused (errno: 111)",
                calls: 1,
                usedPreviousSecret: false, elapsedMilliseconds: 1)
        }
        let journal = Journal()
        try await Self.withLedger { ledger, secret in
            let tracker = Tracker(
                ledger: ledger, appStore: away, options: TrackerOptions(), logger: journal.logger)
            try await Serving.with(tracker) { client in
                let kept = try await client.send(.post, Serving.receipts, secret: secret, body: upload(receipt))
                #expect(kept.status == .accepted)
                let stored = try await client.send(
                    .get, try #require(kept.headers[.location]), secret: secret)
                for response in [kept, stored] {
                    #expect(try AnswerBody(response).text("reason") == "The store could not be reached.")
                    #expect(!String(buffer: response.body).contains("errno"))
                }
            }
        }
        let reported = journal.lines.filter { $0.hasPrefix("warning Apple gave no answer") }
        #expect(reported.count == 1 && reported[0].contains("proxy.internal: refused (errno: 111)"), "\(journal.lines)")
    }

    @Test(
        "What is no receipt is refused and not stored",
        arguments: ["", "<html></html>", #"{\"signedPayload\":\"x\"}"#, "!!!"])
    func whatIsNoReceipt(_ receipt: String) async throws {
        try await withoutReceipts.use { ledger, secret in
            try await Serving.with(Tracker.quiet(ledger)) { client in
                let response = try await client.send(.post, Serving.receipts, secret: secret, body: upload(receipt))
                try expectProblem(response, "not-a-receipt", status: 422)
            }
            #expect(try await ledger.customers.receipts().isEmpty)
        }
    }

    @Test("A receipt that Apple rejects has the outcome rejected")
    func aReceiptAppleRejects() async throws {
        try await Self.withLedger { ledger, secret in
            let tracker = Tracker.quiet(ledger, appStore: .answering(#"{"status":21003}"#))
            try await Serving.with(tracker) { client in
                let response = try await client.send(.post, Serving.receipts, secret: secret, body: upload(receipt))
                try expectProblem(response, "receipt-rejected", status: 422)
                let body = try AnswerBody(response)
                #expect(body.text("outcome") == "rejected" && body.text("detail")?.contains("21003") == true)
                let location = try #require(response.headers[.location])
                let stored = try AnswerBody(await client.send(.get, location, secret: secret))
                #expect(stored.text("outcome") == "rejected" && stored.text("receipt_id") == body.text("receipt_id"))
            }
        }
    }

    /// A wrong secret is the operator's mistake: no receipt is called false because of it.
    @Test("A secret that Apple refuses makes no receipt false")
    func aSecretAppleRefuses() async throws {
        try await Self.withLedger { ledger, secret in
            let tracker = Tracker.quiet(ledger, appStore: .answering(#"{"status":21004}"#))
            try await Serving.with(tracker) { client in
                let response = try await client.send(.post, Serving.receipts, secret: secret, body: upload(receipt))
                #expect(response.status == .accepted && response.headers[.location] != nil)
                #expect(try AnswerBody(response).text("reason")?.contains("21004") == true)
            }
        }
    }

    @Test("A receipt that Apple vouches for gives entitlements")
    func aReceiptAppleVouchesFor() async throws {
        let now = Int64(Date.now.timeIntervalSince1970) * 1000
        let (bought, ends) = (now - 86_400_000, now + 86_400_000)
        let answer = """
            {"status":0,"environment":"Production",
             "receipt":{"bundle_id":"com.example.app","request_date_ms":"\(now)","receipt_creation_date_ms":"\(bought)","in_app":[]},
             "latest_receipt_info":[{"product_id":"com.example.app.monthly","quantity":"1","transaction_id":"100",
              "original_transaction_id":"100","web_order_line_item_id":"1","purchase_date_ms":"\(bought)",
              "original_purchase_date_ms":"\(bought)","expires_date_ms":"\(ends)","is_trial_period":"false",
              "is_in_intro_offer_period":"false","subscription_group_identifier":"2000"}],
             "pending_renewal_info":[{"original_transaction_id":"100","product_id":"com.example.app.monthly",
              "auto_renew_product_id":"com.example.app.monthly","auto_renew_status":"1"}]}
            """
        try await Self.withLedger { ledger, secret in
            try await Serving.with(Tracker.quiet(ledger, appStore: .answering(answer))) { client in
                let response = try await client.send(.post, Serving.receipts, secret: secret, body: upload(receipt))
                #expect(response.status == .ok, "\(String(buffer: response.body))")
                let body = try AnswerBody(response)
                #expect(body.text("outcome") == "verified" && body.text("customer") == "kim")
                let subscription = try #require(body.list("subscriptions")?.first)
                #expect(subscription["original_transaction_id"] as? String == "100")
                #expect(subscription["state"] as? String == "active" && subscription["entitled"] as? Bool == true)
                #expect((subscription["ownership"] as? [String: Any])?["answer"] as? String == "assigned")
                let entitlement = try #require(body.list("entitlements")?.first)
                #expect(
                    Set(entitlement.keys) == [
                        "entitlement", "granted", "until", "ended_at", "product_id", "state", "reason", "environment",
                        "basis",
                        "as_of",
                        "checked_at",
                    ])
                #expect(entitlement["entitlement"] as? String == "com.example.app.monthly")
                #expect(entitlement["granted"] as? Bool == true && entitlement["basis"] as? String == "verified")
                let lookup = try await client.send(.get, Serving.entitlements, secret: secret)
                let found = try AnswerBody(lookup).list("entitlements")?.first
                #expect(found?["until"] as? String == entitlement["until"] as? String)
                #expect(lookup.headers[.eTag] != nil && lookup.headers[.cacheControl] == "private, no-cache")
            }
        }
    }
}
