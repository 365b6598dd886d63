import Postgres
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import Tracking

@Suite("A pause of one environment leaves the checks and uploads of the other one alone")
struct PausedEnvironmentTests {
    private typealias World = SecretTrialTests.World
    /// Lets what is due have been due since it was planned.
    private static let isOverdue = "UPDATE ledger.poll_schedule SET scheduled_for = due_at"

    @Test("What waits is neither claimed nor moved; all of it is asked when the pause ends", arguments: [true, false])
    func waits(isProductionPaused: Bool) async throws {
        let paused = isProductionPaused ? StoreEnvironment.production : .sandbox
        let asked = isProductionPaused ? StoreEnvironment.sandbox : .production
        try await World.with { world in
            for number in 0...2 { #expect(try await world.send(number, own: paused) == .verified) }
            for number in 3...5 { #expect(try await world.send(number, own: asked) == .verified) }
            try await world.pause(paused)
            #expect(try await world.due() == 3)
            try await world.served.run(Self.isOverdue)
            let waiting = """
                SELECT string_agg(s::text, ' ' ORDER BY s.receipt_id) FROM ledger.poll_schedule s WHERE s.receipt_id <= 3
                """
            let before = try await world.text(waiting)
            _ = world.store.calls
            var report = try await Worker(world.tracker).runOnce(maxSeconds: nil)
            #expect(world.store.calls == 3 && report.asked == 3 && report.left == 3)
            #expect(report.why.count == 1 && report.why[0].contains("3 left: Apple refuses"), "\(report.why)")
            #expect(report.why[0].contains("in \(paused.rawValue);"))
            #expect(try await world.text(waiting) == before)

            #expect(try await world.send(3) == .verified)
            #expect(try await world.send(0) == nil)
            for environment in [StoreEnvironment.production, .sandbox] {
                let gauge = try await world.served.ledger.gauge(.paused, ("environment", environment.rawValue))
                #expect(gauge == (environment == paused ? 1 : 0))
            }

            try await world.served.run("UPDATE ledger.secret_trial SET try_at = now() WHERE paused_since IS NOT NULL")
            _ = try await world.due()
            try await world.served.run(Self.isOverdue)
            report = try await Worker(world.tracker).runOnce(maxSeconds: nil)
            #expect(report.left == 0 && report.asked == 6)
        }
    }

    @Test(
        "Behind any number of due receipts of the paused environment the other's are claimed at once",
        arguments: [true, false])
    func behindMany(isProductionPaused: Bool) async throws {
        try await World.with { world in
            try await world.served.run(
                """
                SET LOCAL session_replication_role = replica;
                INSERT INTO ledger.receipt (app_id, digest, data, environment, outcome, asked_at, verified_at)
                SELECT a.app_id, sha256(int8send(g)), '\\x00',
                       CASE WHEN (g <= 20000) = \(isProductionPaused) THEN 'Production' ELSE 'Sandbox' END::ledger.environment,
                       'verified', now(), now()
                FROM ledger.app a CROSS JOIN generate_series(1, 20003) g WHERE a.bundle_id = 'com.example.app';
                INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
                SELECT receipt_id, app_id, 'sweep', at, at, environment = 'Sandbox' FROM ledger.receipt
                CROSS JOIN LATERAL (SELECT now() - interval '1 day' + receipt_id * interval '1 s' AS at) d;
                ANALYZE ledger.poll_schedule;
                """)
            try await world.pause(isProductionPaused ? .production : .sandbox)
            let worker = try await world.tracker.identity.worker(of: world.tracker)
            var turns = ClaimTurns()
            let first = try await world.tracker.claimDue(as: worker, receiptsMax: 384, &turns)
            #expect(first.claims.map(\.receiptID.number).sorted() == [20_001, 20_002, 20_003])
            for _ in 0..<3 {
                let again = try await world.tracker.claimDue(as: worker, receiptsMax: 384, &turns)
                #expect(again.claims.isEmpty)
            }
            #expect(try await world.text("SELECT count(*) FROM ledger.poll_schedule WHERE lease_token > 0") == "3")
        }
    }

    @Test("An app whose checks the Server API makes is not paused by a refused secret, which its status tells")
    func serverAPI() async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .production) == .verified)
            try await world.pause(.production)
            #expect(try await world.app.pauses.count == 1)
            for verifier in ["server_api", "both"] {
                try await world.served.run(
                    """
                    UPDATE ledger.app SET verifier = '\(verifier)', compares_since = CASE WHEN '\(verifier)' = 'both' THEN now() END
                    WHERE bundle_id = 'com.example.app'
                    """)
                let app = try await world.app
                #expect(app.pauses.isEmpty && app.heldSecrets.map(\.environment) == [.production])
                #expect(try await world.due() == 1)
                try await world.served.run(Self.isOverdue)
                let gauges = try await world.served.ledger.operations.gauges().filter { $0.metric == .paused }
                #expect(!gauges.isEmpty && gauges.allSatisfy { $0.value == 0 })
                let (_, why) = try await world.served.ledger.claims.overdue(
                    by: try await world.served.ledger.now(), leaseSeconds: 60)
                #expect(why.count == 1 && !why[0].contains("21004"), "\(why)")
                #expect(try await world.text("SELECT paused_because FROM perennial.receipt_now") == nil)
                let status = try await world.served.ledger.operations.status()
                #expect(status.pauses.isEmpty && status.heldSecrets.map(\.bundleID) == [ServedLedger.app])
            }
        }
    }

    @Test("Before Apple's word about a receipt its own counts")
    func ownWord() async throws {
        try await World.with { world in
            let app = try await world.app
            var upload = Upload(appID: app.id, customer: "kim", receipt: [0x30, 1], imported: false)
            upload.saysSandbox = true
            _ = try await world.served.ledger.intake.store([upload])
            #expect(try await world.text("SELECT is_sandbox FROM ledger.poll_schedule") == "true")
            try await world.pause(.production)
            #expect(try await world.due() == 1)
        }
    }

    @Test("A check that is held back is no failure: however many there are, the app's pace stays")
    func heldBack() async throws {
        try await World.with { world in
            for number in 0..<20 { #expect(try await world.send(number, own: .production) == .verified) }
            let worker = try await world.tracker.identity.worker(of: world.tracker)
            var claims: [Claim] = []
            try await world.pause(.production)
            for number: Int64 in 1...20 {
                claims.append(
                    try await world.served.ledger.claims.claim(ReceiptID(number), for: worker, leaseSeconds: 60))
            }
            _ = world.store.calls
            var answers: [Checked] = []
            for claim in claims { answers.append(Checked(claim, await world.tracker.ask(claim))) }
            #expect(answers.allSatisfy { !$0.isFailure && !$0.isOverloaded } && world.store.calls == 0)
            let windows = OutcomeWindows()
            for _ in 0..<4 { await world.tracker.adaptRates(to: answers, windows) }
            let app = try await world.app
            #expect(app.pause == nil && app.rateLimit.failures == 0 && app.appleFailures == 0)
            let batch = try await world.tracker.settleAndFollowUp(answers)
            #expect(batch.unasked.count == 20)
            #expect(try await world.text("SELECT max(attempts) FROM ledger.poll_schedule") == "0")
        }
    }

    @Test("A trial asks about a receipt whose last answer was a verdict before all others")
    func surestReceipt() async throws {
        try await World.with { world in
            for number in 0...5 { #expect(try await world.send(number, own: .production) == .verified) }
            try await world.served.run(
                "UPDATE ledger.receipt SET outcome = 'indeterminate', reason = 'no answer' WHERE receipt_id <> 2")
            let first = try await world.served.ledger.apps.tellingReceipts(of: world.app, in: .production, limit: 3)
            #expect(first.first?.receiptID == ReceiptID(2))
            try await world.pause(.production)
            try await world.served.run("UPDATE ledger.secret_trial SET try_at = now()")
            _ = world.store.calls
            await world.tracker.trySecrets()
            #expect(world.store.state.withLock { $0.asked } == [Sample.receipt(1)])
            #expect(try await world.app.pauses.isEmpty)
        }
    }

    @Test("A server's first check sends its first heartbeat, so that it counts as gone if it is killed at once")
    func firstHeartbeat() async throws {
        try await World.with { world in
            let isCounted = "SELECT string_agg((ledger.gone_at(w) IS NOT NULL)::text, ' ') FROM ledger.worker w"
            #expect(try await world.send(0, own: .production) == .verified)
            #expect(try await world.text(isCounted) == "false", "a command that checks one receipt sends none")
            let server = world.elsewhere
            await server.identity.beginHeartbeats()
            _ = try await server.check(ReceiptID(1))
            #expect(try await world.text(isCounted + " WHERE worker_id > 1") == "true")
        }
    }
}
