import AppStore
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import AppStoreSimulator
@testable import Tracking

/// What a notification takes in the database, with indexes and all overhead, against the body that Apple would post: the
/// simulator's certificates are shorter than Apple's.
@Suite("A stored notification is small")
struct StoredSizeTests {
    /// The characters of a header of Apple's.
    private static let appleHeader = 4_411

    /// The bytes of the body with headers of Apple's length. Headers within the payload are encoded once more.
    private static func posted(_ text: String) throws -> Int {
        let parts = text.split(separator: ".")
        let missing = appleHeader - parts[0].utf8.count
        let payload = try #require(ShortText.payload(of: Array(text.utf8)))
        let inner = String(decoding: payload, as: UTF8.self).ranges(of: #"Info":"ey"#).count
        return #"{"signedPayload":"\#(text)"}"#.utf8.count + missing + inner * missing * 4 / 3
    }

    @Test("All notifications of two months take at most a quarter of the posted bytes")
    func size() async throws {
        try await PretendWorld.with(seed: 20_261_134, customers: 60, sandboxCustomers: 6, monthSeconds: 6) { world in
            world.simulator.notify(NotificationOptions(url: "http://127.0.0.1:1/nowhere"))
            try await Task.sleep(for: .seconds(12))
            world.clock.stop()
            world.simulator.collectNotifications()
            let token = try await world.tracker.ledger.apps.openNotifications(of: world.bundleID)
            let app = try #require(try await world.tracker.ledger.apps.notifiedApp(at: token))
            var posted = 0
            for made in world.simulator.notifications.made() {
                let text = try world.simulator.signedPayload(of: made)
                posted += try Self.posted(text)
                guard case .verified(let kept) = try await world.tracker.receive(Array(text.utf8), for: app) else {
                    Issue.record("unverified")
                    return
                }
                try await world.tracker.ledger.intake.keep(kept, for: app)
            }
            let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
            let row = try #require(
                try await database.query(
                    Statement(
                        name: "size",
                        sql: """
                            SELECT count(*) AS n, sum(length(texts)) AS texts,
                                   pg_table_size('ledger.notification') AS bytes,
                                   pg_indexes_size('ledger.notification') AS indexes
                            FROM ledger.notification
                            """)
                ).first)
            await database.close()
            let (count, stored) = (try row.int8("n"), try row.int8("bytes"))
            let indexes = try row.int8("indexes")
            print(
                "notifications: \(count), posted \(posted), table \(stored), indexes \(indexes), texts \(try row.int8("texts"))"
            )
            #expect(count > 100)
            #expect(Double(stored + indexes) <= 0.25 * Double(posted))
        }
    }
}
