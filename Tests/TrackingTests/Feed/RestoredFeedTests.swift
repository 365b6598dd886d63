import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("The feed of a restored database has another id, and nothing new comes under the old one")
struct RestoredFeedTests {
    /// A ledger with two events in its feed and two that have no position yet.
    private func withFeed(_ body: (TestLedger, FeedHead) async throws -> Void) async throws {
        try await withNewLedger { test in
            for (receipt, subscription) in [("a", "1"), ("b", "2")] {
                try await test.check(
                    try await test.upload(receipt, by: receipt),
                    Answer(from: test.at(-9), asOf: test.at(-2)).but {
                        $0.subscription = OriginalTransactionID(subscription)
                    })
                if receipt == "a" { try await test.ledger.feed.sequence() }
            }
            let head = try await test.ledger.feed.head()
            #expect(head.position == 2)
            try await body(test, head)
            #expect(try await test.ledger.feed.head() == head)
        }
    }

    private func open<R>(
        _ connectionString: String, _ body: (SubscriptionLedger, Database) async throws -> R
    ) async throws -> R {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print("restored: \($0)") }
        do {
            let result = try await body(SubscriptionLedger(database: database), database)
            await database.close()
            return result
        } catch {
            await database.close()
            throw error
        }
    }

    /// That a reader, an analyst and `status` get the same new id before anything was written; returns the head.
    private func expectNewFeed(
        _ ledger: SubscriptionLedger, _ database: Database, former: FeedHead
    ) async throws -> FeedHead {
        let reported = try await ledger.feed.head()
        #expect(reported.feed != former.feed && reported.position == former.position)
        #expect(try await ledger.feed.read(after: 0, limit: 9).head == reported)
        let view = try await database.query(.test("SELECT feed_id::text AS id FROM perennial.feed_now"))
        #expect(try view.map { try $0.text("id") } == [reported.feed])
        let status = try await ledger.operations.status()
        #expect(status.feedID == reported.feed && status.feedFormerID == former.feed && status.feedRenewedAt == nil)
        #expect(try await audited(database) == [])
        return reported
    }

    /// That the new id is written down, once.
    private func expectWritten(
        _ reported: FeedHead, former: FeedHead, _ ledger: SubscriptionLedger, _ database: Database
    ) async throws {
        #expect(try await ledger.feed.checkPlace() == nil)
        #expect(try await ledger.feed.head().feed == reported.feed)
        let status = try await ledger.operations.status()
        #expect(status.feedID == reported.feed && status.feedFormerID == former.feed && status.feedRenewedAt != nil)
        let renewal: [Cell] = [
            "perennial", "feed.renewed", .text(former.feed), .text(reported.feed), "restored",
        ]
        #expect(try await audited(database) == [renewal])
    }

    private func audited(_ database: Database) async throws -> [[Cell]] {
        try await database.cells(
            """
            SELECT actor, action, detail ->> 'from', detail ->> 'to', detail ->> 'because' FROM perennial.audit_log
            """)
    }

    private func lastDelivery(_ database: Database) async throws -> Int64 {
        let rows = try await database.query(.test("SELECT last_value AS id FROM ledger.delivery_delivery_id_seq"))
        return try #require(rows.first).int8("id")
    }

    @Test("A dump in another cluster has a new feed", .timeLimit(.minutes(2)))
    func anotherCluster() async throws {
        try await withFeed { test, former in
            let cluster = try await PrivateCluster()
            try await cluster.start()
            try await copyByDump(from: test.connectionString, into: cluster.connectionString)
            try await open(cluster.connectionString) { ledger, database in
                let reported = try await expectNewFeed(ledger, database, former: former)
                let renewal = try await ledger.feed.checkPlace()
                #expect(renewal?.former == former.feed && renewal?.feed == reported.feed)
                #expect(try await ledger.operations.migrate().feedRenewal == nil)
                try await expectWritten(reported, former: former, ledger, database)
                #expect(try await ledger.feed.sequence() == 2)
                #expect(try await ledger.feed.head() == FeedHead(feed: reported.feed, position: 4))
            }
            try await cluster.stop(immediate: true)
            try await cluster.remove()
        }
    }

    @Test("A dump in another database of the same cluster has a new feed, also when events get positions first")
    func anotherDatabase() async throws {
        try await withFeed { test, former in
            try await withTestDatabase { _, connectionString in
                try await copyByDump(from: test.connectionString, into: connectionString)
                try await open(connectionString) { ledger, database in
                    let reported = try await expectNewFeed(ledger, database, former: former)
                    #expect(try await ledger.feed.sequence() == 2)
                    #expect(try await ledger.feed.head() == FeedHead(feed: reported.feed, position: 4))
                    try await expectWritten(reported, former: former, ledger, database)
                }
            }
        }
    }

    @Test("A dump in the place of an earlier one has a new feed, whichever program moves the position")
    func samePlace() async throws {
        try await withFeed { test, former in
            try await withTestDatabase { _, connectionString in
                try await copyByDump(from: test.connectionString, into: connectionString)
                let first = try await open(connectionString) { ledger, database in
                    _ = try await ledger.feed.checkPlace()
                    let head = try await ledger.feed.head()
                    try await database.transaction { try $0.script("DROP SCHEMA perennial, ledger CASCADE") }
                    return head
                }
                try await copyByDump(from: test.connectionString, into: connectionString)
                try await open(connectionString) { ledger, database in
                    let second = try await ledger.feed.head()
                    #expect(second.feed != first.feed && second.feed != former.feed)
                    try await database.transaction {
                        try $0.script("UPDATE ledger.feed SET position = position + 7")
                        let stored = try $0.query(.test("SELECT feed_id::text AS id FROM ledger.feed"))
                        #expect(try stored.first?.text("id") == second.feed)
                    }
                    #expect(try await ledger.feed.head() == FeedHead(feed: second.feed, position: 9))
                }
            }
        }
    }

    @Test("Backups of one feed that are restored at the same place differ by their positions")
    func positions() async throws {
        try await withNewLedger { test in
            func id(_ position: Int) async throws -> String {
                try await test.text(
                    "SELECT ledger.feed_id_elsewhere('6fd05f2e-3b6c-4d5c-9a35-6f1f0c1d7a10', \(position), 'there')")
            }
            let first = try await id(1)
            #expect(try await id(1) == first)
            #expect(try await id(2) != first)
            // The version and the variant of a UUIDv8, RFC 9562.
            let form = /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
            #expect(first.wholeMatch(of: form) != nil)
        }
    }

    @Test("A manual renewal names its author, and deliveries skip ids; it is none where the feed has another id")
    func byHand() async throws {
        try await withFeed { test, former in
            try await withTestDatabase { _, connectionString in
                try await copyByDump(from: test.connectionString, into: connectionString)
                try await open(connectionString) { plain, database in
                    let ledger = plain.acting(as: .user("kim"))
                    let reported = try await ledger.feed.head()
                    let renewal = try #require(try await ledger.feed.renew(insteadOf: reported.feed.uppercased()))
                    #expect(renewal.former == reported.feed)
                    #expect(try await ledger.feed.head() == FeedHead(feed: renewal.feed, position: 2))
                    #expect(try await ledger.feed.renew(insteadOf: reported.feed) == nil)
                    // Twice another id: twice a million ids of deliveries that services may know from after the backup.
                    #expect(try await lastDelivery(database) > 2_000_000)
                    #expect(try await lastDelivery(test.database) < 1000)
                    #expect(try await ledger.feed.head().feed == renewal.feed)
                    let expected: [[Cell]] = [
                        ["perennial", "feed.renewed", .text(former.feed), .text(reported.feed), "restored"],
                        ["user kim", "feed.renewed", .text(reported.feed), .text(renewal.feed), "by hand"],
                    ]
                    #expect(try await audited(database) == expected)
                }
            }
        }
    }

    @Test(
        "A promoted standby keeps the id", .timeLimit(.minutes(2)),
        .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"))
    func promotedStandby() async throws {
        try await withFeed { test, _ in
            let primary = try await PrivateCluster()
            try await primary.start()
            try await copyByDump(from: test.connectionString, into: primary.connectionString)
            let head = try await open(primary.connectionString) { ledger, _ in
                _ = try await ledger.feed.checkPlace()
                return try await ledger.feed.head()
            }
            let standby = try await PrivateCluster(following: primary)
            try await standby.start()
            try await open(standby.connectionString) { ledger, database in
                #expect(try await ledger.feed.head() == head)
                try await primary.stop(immediate: true)
                _ = try await database.query(.test("SELECT pg_promote()"))
                #expect(try await ledger.feed.checkPlace() == nil)
                #expect(try await ledger.feed.sequence() == 2)
                #expect(try await ledger.feed.head() == FeedHead(feed: head.feed, position: 4))
                #expect(try await audited(database).count == 1)
            }
            try await standby.stop(immediate: true)
            for cluster in [standby, primary] { try await cluster.remove() }
        }
    }
}
