import Crypto
import Foundation
import Ledger
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import AppStoreSimulator

/// Apple's history of notifications against the simulator, over HTTP.
@Suite("What Apple could not deliver is read in its history")
struct CatchUpTests {
    /// Nothing listens on port 1, so that every notification is lost.
    private static let nowhere = NotificationOptions(url: "http://127.0.0.1:1/notifications")

    @Test("Two months of notifications that nobody heard are caught up with at the start, without a check")
    func start() async throws {
        try await PretendWorld.with(seed: 20_261_130, customers: 60, sandboxCustomers: 6, monthSeconds: 6) { world in
            try await world.listen(to: Self.nowhere)
            try await world.checkEverything()
            let before = try await world.reported().subscriptions
            let app = try await world.tracker.ledger.apps.app(world.bundleID)
            // No check is made, so that only the history can tell.
            try await world.tracker.ledger.apps.pause(app.id, seconds: 3_600, because: "a test")
            let checks = world.simulator.callCount
            try await Task.sleep(for: .seconds(13))
            world.clock.stop()
            // Subscriptions that began meanwhile wait for a whole answer.
            let known = Set(
                world.simulator.truth().filter {
                    $0.subscriptions.allSatisfy { before[$0.originalTransactionID] != nil }
                }.map(\.customer))
            let stoppedAt = world.clock.simulatorClock.milliseconds()
            for _ in 1...6 where try await world.isBehind(stoppedAt) { try await world.work(seconds: 8) }
            #expect(world.simulator.callCount == checks)
            // What does not join, such as a return after an end, waits for a whole answer.
            let waiting = Set(
                try await world.lines(
                    "SELECT original_transaction_id AS line FROM ledger.notification WHERE effect <> 'applied'"))
            let told = Set(
                world.simulator.truth().filter { customer in
                    known.contains(customer.customer)
                        && customer.subscriptions.allSatisfy { !waiting.contains($0.originalTransactionID) }
                }.map(\.customer))
            try await AgreementTests.expectAgreement(in: world, of: told, renewalsMin: 30)
            let (counts, events) = (try await world.notificationCounts(), try await world.eventCount())
            #expect(
                counts["applied"] ?? 0 > 80 && counts["received"] == nil && counts["unverified"] == nil, "\(counts)")

            try await world.run(
                "UPDATE ledger.catch_up SET reads_from = reads_from - interval '1 hour', due_at = now() WHERE leased_by IS NULL"
            )
            try await world.work(seconds: 2)
            let again = try await world.notificationCounts()
            #expect(again.values.reduce(0, +) == counts.values.reduce(0, +), "the same history again")
            #expect(try await world.eventCount() == events)

            try await world.run("UPDATE ledger.app_budget SET paused_until = '-infinity'")
            try await world.checkEverything()
            try await AgreementTests.expectAgreement(in: world, of: known, renewalsMin: 60)
            #expect(try await world.rebuild(correcting: false).differences == [])
            try await world.expectNoViolations()
        }
    }

    @Test("A worker that is killed between two pages loses none and reads none twice", .timeLimit(.minutes(2)))
    func killed() async throws {
        var options = SimulatorOptions(seed: 20_261_131)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (90, 0, 6)
        options.latencyMilliseconds = 150
        try await PretendWorld.with(options) { world in
            try await world.listen(to: Self.nowhere)
            try await Task.sleep(for: .seconds(12))
            world.clock.stop()
            world.simulator.collectNotifications()
            let made = world.simulator.notifications.made().count
            var pages: [String] = []
            var complete: Set<[String]> = []
            for _ in 1...3 {
                let worker = try world.trusting(["worker"])
                while worker.process.isRunning {
                    guard let page = try await world.pageUnderWay(), page != pages.last else { continue }
                    pages.append(page)
                    break
                }
                worker.kill()
                _ = await worker.end()
                try worker.forget()
                #expect(try await world.pageUnderWay() != nil, "it was killed between two pages")
                complete.insert(try await world.completeUntil())
            }
            #expect(Set(pages).count == 3, "each goes on where the one before was")
            #expect(complete.count == 1, "it is complete only after the last page")
            let last = try world.trusting(["worker"])
            let end = ContinuousClock.now + .seconds(60)
            while ContinuousClock.now < end {
                let stored = try await world.notificationCounts().values.reduce(0, +)
                let goesOn = try await world.pageUnderWay() != nil
                if stored >= made, !goesOn { break }
                try await Task.sleep(for: .milliseconds(100))
            }
            let status = await last.stop()
            #expect(status == 0, "\(last.said)")
            try last.forget()
            let counts = try await world.notificationCounts()
            #expect(counts.values.reduce(0, +) == Int64(made) && counts["unverified"] == nil, "\(counts)")
            try await world.checkEverything()
            #expect(try await world.rebuild(correcting: false).differences == [])
            try await world.expectNoViolations()
        }
    }

    @Test("With a key that Apple refuses, status says so, and checks go on")
    func wrongKey() async throws {
        try await PretendWorld.with(seed: 20_261_132, customers: 12, sandboxCustomers: 0, monthSeconds: 86_400) {
            world in
            let apps = world.tracker.ledger.apps
            try await apps.storeServerKey(
                try ConnectKey(pem: PretendWorld.serverKey.pemRepresentation, id: "OTHER", issuer: PretendWorld.issuer),
                of: world.bundleID)
            try await world.work(seconds: 4)
            try await world.run("UPDATE ledger.catch_up SET complete_until = complete_until - interval '3 hours'")
            let said = try await world.status()
            #expect(
                said.contains("Notifications: Apple's history of com.example.tracker (Production) is stored until"),
                "\(said)")
            #expect(said.contains("Apple does not accept the app's server key (401)"), "\(said)")
            #expect(said.contains("lost notifications of com.example.tracker (Production) are not caught up with"))
            #expect(try await world.tracker.ledger.operations.status().unverified == 0)

            try await apps.storeServerKey(
                try ConnectKey(
                    pem: PretendWorld.serverKey.pemRepresentation, id: PretendWorld.serverKeyID,
                    issuer: PretendWorld.issuer), of: world.bundleID)
            try await world.work(seconds: 3)
            let healed = try await world.status()
            #expect(!healed.contains("Apple's history of"), "\(healed)")
            try await world.expectNoViolations()
        }
    }
}

extension PretendWorld {
    /// Has the simulator notify an address, of all that happens from this second on, in which the app was added perhaps.
    fileprivate func listen(to options: NotificationOptions) async throws {
        try await run("UPDATE ledger.app SET created_at = created_at - interval '1 minute'")
        simulator.notify(options)
    }

    /// The token of the page that is read next, while a stretch is under way.
    fileprivate func pageUnderWay() async throws -> String? {
        try await lines("SELECT page AS line FROM ledger.catch_up WHERE kind = 'everything' AND page IS NOT NULL").first
    }

    /// Until when the history of production is stored.
    fileprivate func completeUntil() async throws -> [String] {
        try await lines(
            """
            SELECT complete_until::text AS line FROM ledger.catch_up WHERE kind = 'everything' AND environment = 'Production'
            """)
    }

    /// Whether a history is not stored until an instant, or what it holds not applied.
    fileprivate func isBehind(_ instant: Int64) async throws -> Bool {
        try await lines(
            """
            SELECT '' AS line FROM ledger.catch_up
            WHERE kind = 'everything' AND complete_until < to_timestamp(\(instant) / 1000.0)
            UNION ALL SELECT '' FROM ledger.notification WHERE effect = 'received'
            UNION ALL SELECT '' WHERE NOT EXISTS (SELECT FROM ledger.catch_up)
            """
        ).isEmpty == false
    }

    /// How many events there are of what only Apple can say; an allowance ends by the clock.
    fileprivate func eventCount() async throws -> String? {
        try await lines("SELECT count(*)::text AS line FROM ledger.event WHERE kind <> 'subscription.expired'").first
    }

    /// The column `line` of a query.
    fileprivate func lines(_ sql: String) async throws -> [String] {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        let rows = try await database.query(Statement(name: "lines", sql: sql))
        await database.close()
        return try rows.map { try $0.text("line") }
    }

    /// What `perennial status` says.
    fileprivate func status() async throws -> String {
        let process = try PerennialProcess(["status"], in: self)
        _ = await process.end()
        defer { try? process.forget() }
        return process.said
    }
}
