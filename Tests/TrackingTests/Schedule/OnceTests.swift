import AppStore
import Foundation
import Postgres
import TestSupport
import Testing

@testable import Tracking

/// `worker --once`.
@Suite("What is due is asked about once")
struct OnceTests {
    private static let receipts = 400

    private func withTracker(
        rate: String, _ body: @escaping @Sendable (ServedLedger, Tracker, ScriptedStore) async throws -> Void
    ) async throws {
        let store = ScriptedStore { _ in .saying(Sample.verified()) }
        try await ServedLedger.with { served in
            let app = try await served.ledger.apps.app(ServedLedger.app)
            _ = try await served.ledger.intake.store(
                (0..<Self.receipts).map {
                    Upload(appID: app.id, customer: "c\($0)", receipt: Array("receipt \($0)".utf8), imported: true)
                })
            try await served.run("UPDATE ledger.app_budget SET rate = \(rate), burst = 20, tokens = 0")
            let tracker = Tracker(
                ledger: served.ledger, appStore: store.client, options: TrackerOptions(), logger: Journal().logger)
            try await body(served, tracker, store)
        }
    }

    private func migrateFurther(_ served: ServedLedger, whenAsked store: ScriptedStore) async throws {
        while store.callCount < 5 { try await Task.sleep(for: .milliseconds(20)) }
        try await served.run(
            """
            INSERT INTO ledger.migration (name, digest) VALUES ('9999_newer', '\\x00');
            UPDATE ledger.compatibility SET program_min = 9999
            """)
    }

    @Test("A schema that becomes too new ends it, after what it holds is finished", .timeLimit(.minutes(1)))
    func theSchemaBecomesTooNew() async throws {
        try await withTracker(rate: "20") { served, tracker, store in
            async let migrated: Void = migrateFurther(served, whenAsked: store)
            let error = await #expect(throws: LedgerError.self) { try await Worker(tracker).runOnce(maxSeconds: nil) }
            #expect(error?.kind == .mismatch)
            try await migrated
            let left = try await served.database.query(
                Statement(
                    name: "left",
                    sql: """
                        SELECT (SELECT count(*) FROM ledger.poll_schedule WHERE leased_by IS NOT NULL) AS held,
                               (SELECT count(*) FROM ledger.receipt WHERE asked_at IS NOT NULL) AS asked,
                               (SELECT count(*) FROM ledger.worker WHERE stopped_at IS NULL) AS workers
                        """))
            let row = try #require(left.first)
            #expect(try row.int8("held") == 0 && row.int8("workers") == 0)
            #expect(try Int(row.int8("asked")) == store.callCount)
            #expect(store.callCount < Self.receipts, "it went on claiming")
        }
    }

    @Test("Every event gets its place in the feed, however many there are", .timeLimit(.minutes(1)))
    func everyEventIsPlaced() async throws {
        try await withTracker(rate: "1") { served, tracker, _ in
            try await served.run(
                """
                UPDATE ledger.poll_schedule SET due_at = now() + interval '1 day';
                WITH subscription AS (
                    INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
                    SELECT min(app_id), 'Production', '7' FROM ledger.app RETURNING subscription_id, app_id
                ), event AS (
                    INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind,
                                              product_id, occurred_at, as_of, recorded_at)
                    SELECT gen_random_uuid(), app_id, 'Production', subscription_id, g, 0, 'subscription.renewed',
                           'monthly', now(), now(), now()
                    FROM subscription CROSS JOIN generate_series(1, 10001) g RETURNING event_id
                )
                INSERT INTO ledger.event_outbox SELECT event_id FROM event
                """)
            _ = try await Worker(tracker).runOnce(maxSeconds: nil)
            let placed = try await served.database.query(
                Statement(
                    name: "placed",
                    sql: """
                        SELECT (SELECT count(*) FROM ledger.event_feed) AS placed,
                               (SELECT count(*) FROM ledger.event_outbox) AS waiting
                        """))
            let row = try #require(placed.first)
            let (all, waiting) = (try row.int8("placed"), try row.int8("waiting"))
            #expect(all == 10_001 && waiting == 0, "\(all) placed, \(waiting) waiting")
        }
    }

    @Test("Notifications and workers of long ago are removed, where nothing but cron runs too", .timeLimit(.minutes(1)))
    func removesWhatIsOld() async throws {
        try await withTracker(rate: "0") { served, tracker, _ in
            try await served.run(
                """
                INSERT INTO ledger.worker (host, pid, heartbeat_at)
                SELECT 'old', d, now() + interval '1 hour' - make_interval(days => d) FROM generate_series(29, 32) d;
                INSERT INTO ledger.notification (app_id, received_at, version, kind, effect, body)
                SELECT 1, now() + interval '1 hour' - make_interval(days => d), 2, 'TEST', 'no_subscription', '{}'
                FROM generate_series(89, 92) d
                """)
            _ = try await Worker(tracker).runOnce(maxSeconds: nil)
            let left = try await served.database.query(
                Statement(
                    name: "left",
                    sql: """
                        SELECT (SELECT count(*) FROM ledger.worker WHERE host = 'old') AS workers,
                               (SELECT count(*) FROM ledger.notification) AS notifications
                        """))
            let row = try #require(left.first)
            #expect(try row.int8("workers") == 2 && row.int8("notifications") == 2)
        }
    }

    @Test(
        "A receipt that Apple says nothing of was asked about: it is named, and nothing is left",
        .timeLimit(.minutes(1)))
    func noUsableAnswer() async throws {
        try await ServedLedger.with { served in
            let app = try await served.ledger.apps.app(ServedLedger.app)
            let stored = try await served.ledger.intake.store(
                ["good", "junk"].map {
                    Upload(appID: app.id, customer: $0, receipt: Array($0.utf8), imported: true)
                })
            let junk = Data("junk".utf8).base64EncodedString()
            let store = ScriptedStore { request in
                .saying(request.receipt == junk ? #"{"status":21002}"# : Sample.verified())
            }
            let tracker = Tracker(
                ledger: served.ledger, appStore: store.client, options: TrackerOptions(), logger: Journal().logger)
            let report = try await Worker(tracker).runOnce(maxSeconds: nil)
            #expect(report.asked == 2 && report.left == 0 && report.why.isEmpty, "\(report)")
            #expect(report.unanswered == 1)
            #expect(report.unansweredBecause.first?.hasPrefix("receipt \(stored[1].receiptID): ") == true, "\(report)")
        }
    }

    @Test("With another master key Apple is asked about nothing, and all is left", .timeLimit(.minutes(1)))
    func otherMasterKey() async throws {
        try await withTracker(rate: "0") { served, _, store in
            let seal = try SecretSeal(masterKey: [UInt8](repeating: 8, count: 32))
            let journal = Journal()
            let tracker = Tracker(
                ledger: SubscriptionLedger(database: served.database, seal: seal), appStore: store.client,
                options: TrackerOptions(), logger: journal.logger)
            let report = try await Worker(tracker).runOnce(maxSeconds: nil)
            let problems = journal.lines.filter { $0.hasPrefix("warning") || $0.hasPrefix("error") }
            #expect(problems.count == 1 && problems.first?.contains("does not open") == true, "\(problems)")
            #expect(try await served.ledger.apps.app(ServedLedger.app).pause == nil)
            #expect(store.callCount == 0 && report.asked == 0 && report.left == Self.receipts, "\(report)")
            #expect(report.unanswered == 0 && report.why.count == 1)
            #expect(
                report.why.first
                    == "\(Self.receipts) left: The app's shared secret cannot be read here; the log says why."
            )
        }
    }

    /// The command refuses such a rate. A rate that was written into the database directly crashes no worker.
    @Test("A rate beyond all numbers is as good as none", .timeLimit(.minutes(1)))
    func rateBeyondNumbers() async throws {
        try await withTracker(rate: "1e300") { _, tracker, store in
            let report = try await Worker(tracker).runOnce(maxSeconds: nil)
            #expect(report.asked == Self.receipts && report.left == 0, "\(report.why)")
            #expect(store.callCount == Self.receipts)
        }
    }
}
