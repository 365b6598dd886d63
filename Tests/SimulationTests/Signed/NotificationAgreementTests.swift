import AppStore
import AppStoreSimulator
import Foundation
import Postgres
import ServiceLifecycle
import Subscriptions
import TestSupport
import Testing

@testable import Server
@testable import Tracking

/// Notifications beside polling: dropped, doubled and reordered ones change nothing of the story.
@Suite("Notifications and polling tell one story")
struct NotificationAgreementTests {
    @Test("With a third of the notifications dropped, doubled and reordered, the ledger agrees with the simulator")
    func unreliable() async throws {
        try await PretendWorld.with(seed: 20_261_124, customers: 60, sandboxCustomers: 6, monthSeconds: 6) { world in
            try await world.hearing(dropped: 0.3, doubled: 0.3, reordered: 0.3) { try await world.work(seconds: 14) }
            world.clock.stop()
            try await world.checkEverything()
            let counts = try await world.notificationCounts()
            let (applied, unverified) = (counts["applied"] ?? 0, counts["unverified"] ?? 0)
            print("notifications: \(counts)")
            #expect(applied > 60 && unverified == 0)
            try await AgreementTests.expectAgreement(in: world, renewalsMin: 60)
            try await world.expectNoViolations()
            let rebuilt = try await world.rebuild(correcting: false)
            #expect(rebuilt.differencesBesideRetractions == [])
        }
    }
}

extension PretendWorld {
    /// Has the simulator post its notifications to a server of this world while `body` runs.
    func hearing(
        dropped: Double, doubled: Double, reordered: Double, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        let root = try SigningRoot(der: try simulator.signingAuthority().certificates[2])
        let heard = Tracker(
            ledger: tracker.ledger, appStore: tracker.appStore, options: tracker.options, logger: .quiet,
            signedTexts: SignedTextVerifier(trusting: root))
        let token = try await tracker.ledger.apps.openNotifications(of: bundleID)
        try await serving(with: heard) { port in
            var options = NotificationOptions(url: "http://127.0.0.1:\(port)/v1/notifications/\(token.text)")
            (options.shareDropped, options.shareDoubled, options.shareReordered) = (dropped, doubled, reordered)
            simulator.notify(options)
            try await body()
        }
    }

    /// How many notifications had which effect; unverified ones count as such.
    func notificationCounts() async throws -> [String: Int64] {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        let rows = try await database.query(
            Statement(
                name: "notification_counts",
                sql: """
                    SELECT CASE WHEN signed_at IS NULL THEN 'unverified' ELSE effect END AS effect, count(*) AS n
                    FROM ledger.notification GROUP BY 1
                    """))
        await database.close()
        return try Dictionary(uniqueKeysWithValues: rows.map { (try $0.text("effect"), try $0.int8("n")) })
    }
}
