import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Apple's notifications hasten a question and decide nothing")
struct UnverifiedNotificationTests {
    private let refund = UnverifiedNotification(
        version: .two, kind: "REFUND", appleID: "u1", bundleID: "com.example.app", environment: .production,
        originalTransactionID: "1000", body: #"{"signedPayload":"a.b.c"}"#)

    private func hint(_ change: (inout UnverifiedNotification) -> Void) -> UnverifiedNotification {
        var copy = refund
        change(&copy)
        return copy
    }

    /// A ledger where notifications are taken, with a receipt that polls subscription 1000.
    private func withPolled(
        _ body: (TestLedger, NotifiedApp, ReceiptID) async throws -> Void
    ) async throws {
        try await withLedger { test in
            let (app, receipt) = try await poll(in: test)
            try await askedLongAgo(test)
            try await body(test, app, receipt)
        }
    }

    private func poll(in test: TestLedger) async throws -> (NotifiedApp, ReceiptID) {
        let token = try await test.ledger.apps.openNotifications(of: "com.example.app")
        let app = try #require(try await test.ledger.apps.notifiedApp(at: token))
        let receipt = try await test.upload("a")
        try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
        return (app, receipt)
    }

    /// Moves the answers of now an hour back.
    private func askedLongAgo(_ test: TestLedger) async throws {
        try await test.run("UPDATE ledger.receipt SET asked_at = now() - interval '1 hour'")
    }

    /// When the receipt is due: whole seconds from the database's clock, rounded up, and its lane.
    private func due(_ test: TestLedger) async throws -> (seconds: Int, lane: Lane?) {
        let line = try await test.text(
            "SELECT ceil(extract(epoch FROM due_at - now()))::int AS s, lane FROM ledger.poll_schedule")
        let parts = line.split(separator: " ").map(String.init)
        return (try #require(Int(parts[0])), Lane(rawValue: parts[1]))
    }

    @Test("The next check moves to 5 seconds from now, behind checks at an end, and nothing else changes")
    func pulled() async throws {
        try await withPolled { test, app, _ in
            #expect(try await due(test).seconds > 86_400)
            var before = try await test.everything()
            #expect(try await test.ledger.intake.keep(refund, for: app) == .pulled)
            let due = try await due(test)
            #expect((0...5).contains(due.seconds) && due.lane == .retry)
            var after = try await test.everything()
            for table in ["poll_schedule", "notification"] { (before[table], after[table]) = (nil, nil) }
            #expect(before == after)
            try await test.expectRows(
                """
                SELECT version, kind, apple_id, environment, original_transaction_id, effect FROM ledger.notification
                """, [[2, "REFUND", "u1", "Production", "1000", "pulled"]])
            let claims = try await test.ledger.claims.claim(
                for: test.worker, [Quota(app: test.app, lane: .retry, receipts: 9)], leaseSeconds: 60,
                now: test.at(0.01)
            )
            #expect(claims.count == 1)
        }
    }

    @Test("A check that is due sooner stays; a sooner one is never put off")
    func sooner() async throws {
        try await withPolled { test, app, _ in
            try await test.run("UPDATE ledger.poll_schedule SET due_at = now() - interval '7 s'")
            #expect(try await test.ledger.intake.keep(refund, for: app) == .pulled)
            #expect(try await due(test).seconds <= -6)
        }
    }

    @Test("At most one check a minute and receipt, whichever subscription of it is named, and none is lost")
    func minute() async throws {
        try await withPolled { test, app, receipt in
            #expect(try await test.ledger.intake.keep(refund, for: app) == .pulled)
            #expect(try await due(test).seconds <= 5)
            let other = Answer(from: test.at(-9), asOf: test.at(-0.5)).but { $0.subscription = "2000" }
            try await test.check(receipt, together([Answer(from: test.at(-9), asOf: test.at(-0.5)), other]))
            #expect(try await test.ledger.intake.keep(hint { $0.appleID = "u2" }, for: app) == .pulled)
            let waits = try await due(test).seconds
            #expect((58...60).contains(waits))
            try await test.run("UPDATE ledger.receipt SET asked_at = asked_at - interval '10 s'")
            for number in 3..<40 {
                let another = hint {
                    ($0.appleID, $0.originalTransactionID) = ("u\(number)", OriginalTransactionID("2000"))
                }
                #expect(try await test.ledger.intake.keep(another, for: app) == .pulled)
            }
            let waitsLess = try await due(test).seconds
            #expect((45...50).contains(waitsLess))
            #expect(
                try await test.text("SELECT count(DISTINCT check_at) FROM ledger.notification") == "3")
        }
    }

    @Test("A receipt that is being asked about is asked about again")
    func leased() async throws {
        try await withPolled { test, app, receipt in
            let claim = try await test.claim(receipt)
            let leased = try await test.text("SELECT due_at, lease_token FROM ledger.poll_schedule")
            #expect(try await test.ledger.intake.keep(refund, for: app) == .awaited)
            #expect(try await test.text("SELECT due_at, lease_token FROM ledger.poll_schedule") == leased)
            try await test.settle(claim, .verified(Answer(from: test.at(-9), asOf: test.at(-0.5)).evidence))
            let due = try await due(test)
            #expect((55...60).contains(due.seconds) && due.lane == .expiring)
        }
    }

    @Test("A receipt in quarantine keeps its pace")
    func quarantined() async throws {
        try await withPolled { test, app, _ in
            try await test.run("UPDATE ledger.poll_schedule SET lane = 'quarantine'")
            #expect(try await test.ledger.intake.keep(refund, for: app) == .awaited)
            let due = try await due(test)
            #expect(due.seconds > 86_400 && due.lane == .quarantine)
        }
    }

    @Test("A receipt that rests is put back on the schedule")
    func retired() async throws {
        try await withPolled { test, app, _ in
            try await test.run("DELETE FROM ledger.poll_schedule")
            #expect(try await test.ledger.intake.keep(refund, for: app) == .pulled)
            let due = try await due(test)
            #expect((0...5).contains(due.seconds) && due.lane == .retry)
        }
    }

    @Test("A one-time purchase is asked about by the newest receipt that holds it")
    func purchased() async throws {
        try await withPolled { test, app, _ in
            let older = try await test.upload("b")
            try await test.check(older, purchase("77", at: test.at(-5), asOf: test.at(-1)))
            try await askedLongAgo(test)
            #expect(try await test.ledger.intake.keep(hint { $0.originalTransactionID = "77" }, for: app) == .pulled)
            let pulled = try await test.text(
                "SELECT receipt_id FROM ledger.poll_schedule WHERE due_at < now() + interval '6 s'")
            #expect(pulled == older.description)
        }
    }

    /// What would be found, if it named an app, comes last: it moves the check.
    private static let strangers: [(NotificationEffect, String?, String?, String?)] = [
        (.unknown, "other", "Production", "com.example.app"), (.unknown, "1000", "Sandbox", "com.example.app"),
        (.noSubscription, nil, "Production", "com.example.app"), (.noSubscription, "1000", nil, "com.example.app"),
        (.ignored, "1000", "Production", "com.example.other"), (.pulled, "1000", "Production", nil),
    ]

    @Test("What names nothing of ours is kept and does nothing")
    func strangers() async throws {
        try await withPolled { test, app, _ in
            for (effect, subscription, environment, bundle) in Self.strangers {
                let stranger = hint {
                    $0.originalTransactionID = subscription.map { OriginalTransactionID($0) }
                    $0.environment = environment.flatMap { StoreEnvironment(rawValue: $0) }
                    $0.bundleID = bundle.map { BundleID($0) }
                }
                let did = try await test.ledger.intake.keep(stranger, for: app)
                let due = try await due(test)
                let kept = try await test.text("SELECT effect FROM ledger.notification")
                #expect(did == effect && kept == effect.rawValue, "\(stranger)")
                #expect((due.seconds <= 5) == (effect == .pulled), "\(stranger)")
                try await test.run("DELETE FROM ledger.notification")
            }
        }
    }

    @Test("The ledger knows the effects that the program gives, and no other")
    func effects() async throws {
        try await withLedger { test in
            let rule = try await test.text(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'notification_effect_known'")
            let known = Set(rule.matches(of: #/'([a-z_]+)'/#).map { String($0.1) })
            #expect(known == Set(NotificationEffect.allCases.map(\.rawValue)).subtracting(["repeated"]))
        }
    }

    @Test("A repetition is not kept twice; version 1 has no id that shows it")
    func repeated() async throws {
        try await withPolled { test, app, _ in
            #expect(try await test.ledger.intake.keep(refund, for: app) == .pulled)
            try await test.run("DELETE FROM ledger.poll_schedule")
            #expect(try await test.ledger.intake.keep(refund, for: app) == .repeated)
            #expect(try await test.text("SELECT count(*) FROM ledger.poll_schedule") == "0")
            for _ in 0..<2 {
                let first = hint {
                    $0.version = .one
                    $0.appleID = nil
                }
                #expect(try await test.ledger.intake.keep(first, for: app) == .pulled)
            }
            #expect(try await test.text("SELECT count(*) FROM ledger.notification") == "3")
        }
    }

    @Test("The address changes with each one that is made, ends when it is closed, and is nowhere in clear")
    func address() async throws {
        try await withLedger { test in
            let first = try await test.ledger.apps.openNotifications(of: "com.example.app")
            #expect(try await test.appNow().takesNotifications)
            let second = try await test.ledger.apps.openNotifications(of: "com.example.app")
            #expect(try await test.ledger.apps.notifiedApp(at: first) == nil)
            #expect(try await test.ledger.apps.notifiedApp(at: second)?.bundleID == "com.example.app")
            for lines in try await test.everything().values {
                #expect(!lines.joined().contains(second.text))
            }
            try await test.ledger.apps.closeNotifications(of: "com.example.app")
            #expect(try await test.ledger.apps.notifiedApp(at: second) == nil)
            #expect(try await !test.appNow().takesNotifications)
            await #expect(throws: LedgerError.self) { try await test.ledger.apps.openNotifications(of: "unknown-app") }
        }
    }

    @Test("Old notifications go, the oldest first and not all at once")
    func pruned() async throws {
        try await withLedger { test in
            try await test.run(
                """
                INSERT INTO ledger.notification (app_id, received_at, version, kind, effect, body)
                SELECT 1, now() + interval '1 hour' - make_interval(days => d), 2, 'TEST', 'no_subscription', '{}'
                FROM generate_series(1, 1200) d
                """)
            #expect(try await test.ledger.intake.pruneNotifications() == 1_000)
            #expect(try await test.text("SELECT count(*) FROM ledger.notification") == "200")
            #expect(try await test.ledger.intake.pruneNotifications() == 110)
            #expect(try await test.ledger.intake.pruneNotifications() == 0)
        }
    }

    @Test("Delays shrink with an accelerated App Store, but not below a quarter of a second")
    func accelerated() async throws {
        try await withPolled { test, app, _ in
            var ledger = test.ledger
            ledger.speedup = 1_000
            try await ledger.intake.keep(refund, for: app)
            #expect(
                try await test.text(
                    "SELECT check_at - received_at = interval '0.25 s' AS is_short FROM ledger.notification") == "true")
        }
    }

    @Test("Worker and server may keep hints and remove old ones", arguments: ["perennial_worker", "perennial_api"])
    func roles(role: String) async throws {
        try await withNewLedger { test in
            let (app, _) = try await poll(in: test)
            try await test.ledger.operations.grantRoles()
            let database = Database(
                DatabaseConfiguration(connectionString: test.connectionString + " options='-c role=\(role)'")
            ) { print("as \(role): \($0)") }
            let ledger = SubscriptionLedger(database: database)
            #expect(try await ledger.intake.keep(refund, for: app) == .pulled)
            #expect(try await ledger.intake.pruneNotifications(olderThanDays: -1) == 1)
            try await ledger.claims.forgetWorkers()
            await #expect(throws: DatabaseError.self) { try await ledger.apps.openNotifications(of: "com.example.app") }
            await database.close()
        }
    }

    @Test("Hints, uploads and settlements of the same receipts side by side never deadlock or lose a hint")
    func sideBySide() async throws {
        try await withPolled { test, app, receipt in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    let hint = hint { $0.appleID = "s\(number)" }
                    group.addTask { _ = try await test.ledger.intake.keep(hint, for: app) }
                    group.addTask {
                        guard let claim = try? await test.claim(receipt) else { return }
                        try await test.settle(
                            claim, .verified(Answer(from: test.at(-9), asOf: test.at(-0.5)).evidence))
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await test.text("SELECT count(*) FROM ledger.notification") == "20")
            try await test.expectSound()
        }
    }
}
