import AppStore
import CoreMetrics
import Foundation
import HTTPTypes
import HummingbirdTesting
import Logging
import NIOCore
import NIOPosix
import Postgres
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import Server
@testable import Tracking

@Suite("/metrics shows what a process does")
struct MetricsPageTests {
    private static func answer() -> String {
        let now = Int64(Date.now.timeIntervalSince1970) * 1000
        let (bought, ends) = (now - 86_400_000, now + 20 * 86_400_000)
        return """
            {"status":0,"environment":"Production",
             "receipt":{"bundle_id":"com.example.app","request_date_ms":"\(now)","receipt_creation_date_ms":"\(bought)","in_app":[]},
             "latest_receipt_info":[{"product_id":"monthly","quantity":"1","transaction_id":"100",
              "original_transaction_id":"100","web_order_line_item_id":"1","purchase_date_ms":"\(bought)",
              "original_purchase_date_ms":"\(bought)","expires_date_ms":"\(ends)","is_trial_period":"false"}],
             "pending_renewal_info":[{"original_transaction_id":"100","product_id":"monthly",
              "auto_renew_product_id":"monthly","auto_renew_status":"1"}]}
            """
    }

    /// A ledger with an app and `receipts` receipts, and a line to an App Store that vouches for all of them.
    private func withTracker(
        receipts: Int, _ body: @escaping @Sendable (Tracker, MetricsRegistry, Journal) async throws -> Void
    ) async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: [UInt8](repeating: 7, count: 32)))
            try await ledger.apps.add("com.example.app", secret: "shared secret", callsPerSecond: 0)
            let app = try await ledger.apps.app("com.example.app")
            _ = try await ledger.intake.store(
                (0..<receipts).map {
                    Upload(appID: app.id, customer: "c\($0)", receipt: Array("receipt \($0)".utf8), imported: false)
                })
            // A process that uploads checks at once; the worker checks these.
            try await database.transaction {
                try $0.script("UPDATE ledger.poll_schedule SET due_at = now() - interval '1 s'")
            }
            let (registry, journal) = (MetricsRegistry(), Journal())
            let tracker = Tracker(
                ledger: ledger, appStore: .answering(Self.answer()), options: TrackerOptions(),
                logger: journal.logger, metrics: registry)
            try await body(tracker, registry, journal)
        }
    }

    private func page(_ tracker: Tracker, _ registry: MetricsRegistry) async throws -> MetricsReader {
        try await Serving.with(tracker, metrics: registry) { client in
            let response = try await client.send(.get, "/metrics")
            #expect(response.headers[.contentType] == "text/plain; version=0.0.4; charset=utf-8")
            return try MetricsReader(String(buffer: response.body))
        }
    }

    @Test(
        "What was asked, settled and is due stands there; the log has one line for all of it"
    )
    func working() async throws {
        try await withTracker(receipts: 40) { tracker, registry, journal in
            let app = ["app": "com.example.app"]
            let before = try await page(tracker, registry)
            #expect(before.value("perennial_due_receipts", app.merging(["lane": "new"]) { $1 }) == 40)
            #expect(
                before.value("perennial_due_lag_seconds", app.merging(["lane": "new"]) { $1 }).map { $0 >= 0 } == true)
            #expect(before.value("perennial_due_lag_seconds", app.merging(["lane": "import"]) { $1 }) == 0)
            #expect(before.value("perennial_database_up") == 1)
            for environment in ["Production", "Sandbox"] {
                #expect(before.value("perennial_paused", app.merging(["environment": environment]) { $1 }) == 0)
            }
            #expect(before.value("perennial_in_flight_receipts") == 0 && before.value("perennial_workers") == 0)
            let report = try await Worker(tracker).runOnce(maxSeconds: nil)
            #expect(report.asked == 40)
            let after = try await page(tracker, registry)
            let verified = app.merging(["outcome": "verified", "status": "0"]) { $1 }
            #expect(after.value("perennial_answers_total", verified) == 40)
            #expect(after.value("perennial_appstore_calls_total", ["endpoint": "production"]) == 40)
            #expect(after.value("perennial_appstore_answer_seconds_count", ["endpoint": "production"]) == 40)
            #expect(after.value("perennial_settlement_receipts_sum") == 40)
            #expect(after.value("perennial_claim_receipts_sum") == 40)
            #expect(after.value("perennial_events_total", ["kind": "subscription.started"]) == 1)
            #expect(after.value("perennial_in_flight_receipts") == 0)
            let route = ["method": "GET", "route": "/metrics", "status": "200"]
            #expect(after.value("perennial_http_requests_total", route) == 1)

            let batches = after.value("perennial_settlement_receipts_count").map { Int($0) }
            #expect(journal.lines.count { $0.hasPrefix("debug settled") } == batches)
            let lines = journal.lines.filter { !$0.hasPrefix("debug") && !$0.hasPrefix("trace") }
            #expect(lines.count == 1 && lines[0].hasPrefix("info checked"), "\(lines)")
            #expect(lines[0].contains("\"checks\": 40") && lines[0].contains("\"changed\": 40"), "\(lines)")
        }
    }

    @Test("While the database does not answer, its numbers are absent and the process's own are there")
    func withoutDatabase() async throws {
        let registry = MetricsRegistry()
        let away = DatabaseConfiguration(connectionString: "host=127.0.0.1 port=1", connectTimeoutSeconds: 1)
        let database = Database(away) { _ in }
        let tracker = Tracker.quiet(SubscriptionLedger(database: database), metrics: registry)
        registry.gauge(.feedLag).set(9)
        let page = try await page(tracker, registry)
        #expect(page.value("perennial_database_up") == 0 && page.value("perennial_feed_lag_seconds") == nil)
        #expect(page.value("perennial_in_flight_receipts") == 0)
        #expect(page.value("process_start_time_seconds").map { $0 > 1_700_000_000 } == true)
        await database.close()
    }

    @Test("The database is asked at most once in five seconds")
    func seldom() async throws {
        try await withTracker(receipts: 1) { tracker, registry, _ in
            let time = Mutex(ContinuousClock.now)
            let page = MetricsPage(registry, of: tracker, now: { time.withLock { $0 } })
            #expect(await page.text().contains("lane=\"new\"} 1\n"))
            _ = try await Worker(tracker).runOnce(maxSeconds: nil)
            #expect(await page.text().contains("perennial_due_receipts{app=\"com.example.app\",lane=\"new\"} 1\n"))
            time.withLock { $0 += .seconds(5) }
            #expect(await page.text().contains("perennial_due_receipts{app=\"com.example.app\",lane=\"new\"} 0\n"))
        }
    }

    @Test("The figures of the business stand there by app, environment and currency, and are read once a minute")
    func business() async throws {
        try await withTracker(receipts: 3) { tracker, registry, _ in
            _ = try await Worker(tracker).runOnce(maxSeconds: nil)
            let time = Mutex(ContinuousClock.now)
            let page = MetricsPage(registry, of: tracker, now: { time.withLock { $0 } })
            #expect(await !page.text().contains("perennial_mrr{"))
            try await tracker.ledger.database.transaction {
                try $0.script(
                    """
                    INSERT INTO ledger.summary_day
                    SELECT app_id, 'Production', (now() AT TIME ZONE 'UTC')::date - days, currency, 4, 1, 2, mrr, 0, 0, 0, 0, 0, 0
                    FROM ledger.app, (VALUES (1, '', 0), (2, '', 0), (2, 'EUR', 12500), (0, 'EUR', 7000)) v (days, currency, mrr);
                    UPDATE ledger.subscription_span SET state = 'grace_period' WHERE state = 'active' AND upper_inf(known)
                    """)
            }
            time.withLock { $0 += .seconds(59) }
            #expect(await !page.text().contains("perennial_mrr{"))
            time.withLock { $0 += .seconds(1) }
            let read = try MetricsReader(await page.text())
            let labels = ["app": "com.example.app", "environment": "Production"]
            #expect(read.value("perennial_entitled_subscriptions", labels) == 12)
            #expect(read.value("perennial_trial_subscriptions", labels) == 3)
            #expect(read.value("perennial_paying_subscriptions", labels) == 6)
            #expect(read.value("perennial_grace_period_subscriptions", labels) == 1)
            #expect(read.value("perennial_billing_retry_subscriptions", labels) == 0)
            #expect(read.value("perennial_mrr", labels.merging(["currency": "EUR"]) { $1 }) == 12.5)
        }
    }

    @Test("After an outage the figures of the business are there with the first scrape that the database answers")
    func businessAfterAnOutage() async throws {
        try await withTracker(receipts: 1) { tracker, registry, _ in
            _ = try await Worker(tracker).runOnce(maxSeconds: nil)
            let time = Mutex(ContinuousClock.now)
            let page = MetricsPage(registry, of: tracker, now: { time.withLock { $0 } })
            try await tracker.ledger.database.transaction {
                try $0.script(
                    """
                    UPDATE ledger.subscription_span SET state = 'grace_period'
                    WHERE state = 'active' AND upper_inf(known)
                    """)
            }
            let figure = "perennial_grace_period_subscriptions{"
            #expect(await page.text().contains(figure))
            // Without this table both readings fail, as they do while the database is away.
            for (sql, isThere) in [
                ("ALTER TABLE ledger.app RENAME TO app_away", false),
                ("ALTER TABLE ledger.app_away RENAME TO app", true),
            ] {
                try await tracker.ledger.database.transaction { try $0.script(sql) }
                time.withLock { $0 += .seconds(MetricsPage.secondsBetween) }
                let text = await page.text()
                #expect(text.contains(figure) == isThere, "\(text)")
                #expect(text.contains("perennial_database_up \(isThere ? 1 : 0)\n"), "\(text)")
            }
        }
    }

    @Test("The page names the version of the program")
    func version() {
        let text = MetricsText.text(of: MetricsRegistry(version: "1.2.3").contents)
        #expect(text.contains("perennial_build_info{version=\"1.2.3\"} 1\n"))
    }

    @Test("The invariants stand there as a worker found them")
    func invariants() async throws {
        try await withTracker(receipts: 1) { tracker, registry, _ in
            try await tracker.verify(.coverage, as: try await tracker.startWorker())
            let page = try await page(tracker, registry)
            #expect(page.value("perennial_invariant_violations", ["check": "coverage"]) == 0)
        }
    }

    @Test("The log says at its usual level which right the figures need")
    func withoutRight() async throws {
        try await withMigratedDatabase { database, connectionString in
            try await SubscriptionLedger(database: database).operations.grantRoles()
            try await database.transaction { try $0.script("REVOKE SELECT ON ledger.worker FROM perennial_api") }
            let own = Database(
                DatabaseConfiguration(connectionString: connectionString + " options='-c role=perennial_api'")
            ) { print($0) }
            let (registry, journal) = (MetricsRegistry(), Journal())
            let tracker = Tracker(
                ledger: SubscriptionLedger(database: own), appStore: .answering(Self.answer()),
                options: TrackerOptions(), logger: journal.logger, metrics: registry)
            #expect(try await page(tracker, registry).value("perennial_database_up") == 0)
            let warnings = journal.lines.filter { $0.hasPrefix("warning the database gave no metrics: ") }
            #expect(warnings.contains { $0.contains("permission denied for table worker") }, "\(journal.lines)")
            await own.close()
        }
    }

    @Test("A worker's own server shows metrics and health, and nothing else")
    func ofAWorker() async throws {
        try await withTracker(receipts: 0) { tracker, registry, _ in
            let server = MetricsServer(tracker: tracker, metrics: registry, host: "127.0.0.1", port: 0)
            try await server.application.test(.live) { client in
                for path in ["/metrics", "/healthz", "/readyz"] {
                    #expect(try await client.send(.get, path).status == .ok)
                }
                try expectProblem(try await client.send(.get, Serving.entitlements), "not-found", status: 404)
            }
        }
    }

    @Test("A client that only connects does not keep others from a worker's health")
    func silentConnections() async throws {
        try await withTracker(receipts: 0) { tracker, registry, _ in
            var server = MetricsServer(tracker: tracker, metrics: registry, host: "127.0.0.1", port: 0)
            server.limits.idleSeconds = 1
            try await server.application.test(.live) { client in
                let port = try #require(client.port)
                let silent = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                var open: [any Channel] = []
                for _ in 0..<MetricsServer.connectionsMax {
                    open.append(try await silent.connect(host: "127.0.0.1", port: port).get())
                }
                let answer = try await RawExchange.send(
                    "GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "))
                for channel in open { try await channel.closeFuture.get() }
            }
        }
    }

    @Test(
        "promtool accepts the page and the rules",
        .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_PROMTOOL"] != nil))
    func promtool() async throws {
        try await withTracker(receipts: 3) { tracker, registry, _ in
            _ = try await Worker(tracker).runOnce(maxSeconds: nil)
            let text = await MetricsPage(registry, of: tracker).text()
            #expect(try await promtool(["check", "metrics"], input: text) == "")
        }
        var root = URL(filePath: #filePath)
        for _ in 0..<4 { root.deleteLastPathComponent() }
        let said = try await promtool(["check", "rules", root.appending(path: "docs/alerts.yml").path], input: "")
        #expect(said.contains("SUCCESS"), "\(said)")
    }

    /// Runs promtool and answers what it says; a status other than 0 is a failure of the test.
    private func promtool(_ arguments: [String], input: String) async throws -> String {
        let process = Process()
        process.executableURL = URL(
            filePath: ProcessInfo.processInfo.environment["PERENNIAL_TEST_PROMTOOL"] ?? "promtool")
        process.arguments = arguments
        let (inside, outside) = (Pipe(), Pipe())
        (process.standardInput, process.standardOutput, process.standardError) = (inside, outside, outside)
        try process.run()
        inside.fileHandleForWriting.write(Data(input.utf8))
        try inside.fileHandleForWriting.close()
        let said = await outside.fileHandleForReading.textToEnd()
        #expect(await process.ended() == 0, "\(said)")
        return said
    }
}
