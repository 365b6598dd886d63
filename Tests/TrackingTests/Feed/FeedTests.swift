import Foundation
import Postgres
import SeededRandom
import Subscriptions
import Testing

@testable import Tracking

@Suite("Events have dense positions and lasting ids")
struct FeedTests {
    @Test(
        "Positions are dense from 1 and follow each subscription's order, in whatever order tasks write and place",
        arguments: [3 as UInt64])
    func dense(seed: UInt64) async throws {
        try await withLedger(connections: 8) { test in
            var random = Seeded(seed: seed)
            print(random)
            var receipts: [ReceiptID] = []
            for index in 0..<8 { receipts.append(try await test.upload("r\(index)", by: "c\(index)")) }
            let plans = receipts.map { _ in (0..<5).map { _ in Bool.random(using: &random) } }
            let uploaded = receipts
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (receipt, renewals) in zip(uploaded, plans) {
                    group.addTask {
                        for (round, willRenew) in renewals.enumerated() {
                            try await test.check(
                                receipt,
                                Answer(from: test.at(-9), asOf: test.at(-8 + Double(round))).but {
                                    ($0.subscription, $0.willRenew) = (OriginalTransactionID("s\(receipt)"), willRenew)
                                })
                        }
                    }
                }
                for _ in 0..<3 {
                    group.addTask { for _ in 0..<25 { try await test.ledger.feed.sequence(limit: 4) } }
                }
                try await group.waitForAll()
            }
            while let placed = try await test.ledger.feed.sequence(), placed > 0 {}
            let events = try await test.row("SELECT count(*) FROM ledger.event")[0]
            try await test.expectRows(
                "SELECT min(position), max(position), count(*) FROM ledger.event_feed", [[1, events, events]])
            try await test.expectRows("SELECT count(*) FROM perennial.event_log", [[events]])
            #expect(
                try await test.rows(
                    """
                    SELECT position FROM (
                        SELECT position, (version, ordinal) < lag((version, ordinal)) OVER (
                            PARTITION BY original_transaction_id ORDER BY position) AS wrong
                        FROM perennial.event_log) o WHERE wrong
                    """) == [])
            try await test.expectSound()
        }
    }

    @Test("A position is never given twice, not even when the feed's newest rows are gone")
    func neverTwice() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-2)))
            let placed = Int64(try #require(try await test.ledger.feed.sequence()))
            #expect(placed == 2)
            #expect(try await test.ledger.feed.head().position == placed)
            try await test.run("DELETE FROM ledger.event_feed")
            #expect(try await test.ledger.feed.sequence() == 0)
            try await test.check(
                try await test.upload("b", by: "bob"),
                Answer(from: test.at(-9), asOf: test.at(-1)).but { $0.subscription = "2" })
            #expect(try await test.ledger.feed.sequence() == 2)
            #expect(try await test.rows("SELECT position FROM ledger.event_feed ORDER BY 1") == ["3", "4"])
            #expect(try await test.ledger.feed.head().position == 4)
            #expect(try await test.ledger.feed.read(after: placed, limit: 10).events.map(\.position) == [3, 4])
        }
    }

    @Test("Erasing the customer of the newest events leaves their positions where they are")
    func erasureKeepsPositions() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-2)))
            try await test.ledger.feed.sequence()
            let before = try await test.rows("SELECT position, kind FROM perennial.event_log ORDER BY 1")
            _ = try await test.ledger.customers.erase(
                "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "asked to be forgotten"))
            try await test.ledger.feed.sequence()
            let after = try await test.rows("SELECT position, kind FROM perennial.event_log ORDER BY 1")
            #expect(Array(after.prefix(before.count)) == before)
        }
    }

    @Test("An event's public id is the UUIDv5 of its stream, version and ordinal")
    func publicIDs() async throws {
        #expect(
            hexadecimal(EventIdentity(stream: "subscription/1/Production/1000", version: 1, ordinal: 0).bytes)
                == "7f43b82d476855c990ba52296efe475d")
        #expect(
            hexadecimal(EventIdentity(stream: "purchase/2/Sandbox/77/coins", version: 12, ordinal: 3).bytes)
                == "40a90ebf0c785cffb4ad763da59418f3")
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            #expect(test.app.id == 1)
            #expect(
                try await test.text("SELECT replace(public_id::text, '-', '') FROM ledger.event WHERE version = 1")
                    == "7f43b82d476855c990ba52296efe475d")
        }
    }

    private func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { String(format: "%02x", $0) }.joined()
    }
}
