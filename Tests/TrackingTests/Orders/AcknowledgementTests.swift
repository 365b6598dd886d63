import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A service acknowledges many deliveries by one call")
struct AcknowledgementTests {
    @Test("What nothing follows from, what pays an order, what changed, what is settled and what is unknown, at once")
    func mixed() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            _ = try await test.sealed.orders.place(
                OrderRequest(customer: "ann", productID: "themes"), of: test.app.bundleID, requestKey: "k")
            try await test.run("UPDATE ledger.purchase_order SET created_at = created_at - interval '3 days'")
            for (place, id) in ["plain", "changed", "early", "skipped", "late"].enumerated() {
                try await test.buys(id, quantity: place + 1)
            }
            try await test.buys("ordered", "themes")
            try await test.buys("changed", quantity: 2, asOf: -0.8, refunded: -0.9)
            let deliveries = test.ledger.acting(as: .key(7)).deliveries
            let ids = try await deliveries.read(
                of: test.app.bundleID, state: .due, after: 0, limit: 10
            ).deliveries.map(\.id)
            _ = try await deliveries.acknowledge([ids[2]], of: test.app.bundleID)
            _ = try await test.ledger.acting(as: .user("kim")).deliveries.skip(
                ids[3], of: test.app.bundleID, because: "a test")
            let asked = ids.prefix(4) + [ids[5], 99, ids[0]]
            let results = try await deliveries.acknowledge(Array(asked), of: test.app.bundleID)
            #expect(results.map(\.id) == Array(asked))
            #expect(
                results.map(\.state) == [
                    .acknowledged, .acknowledged, .acknowledged, .skipped, .acknowledged, nil, .acknowledged,
                ])
            #expect(results.map(\.isFirst) == [true, true, false, false, true, false, false], "named twice, done once")
            #expect(results[0].settledBy == "key 7" && results[1].settledBy == "key 7")
            #expect(
                try await test.deliveries() == [
                    "1 purchase acknowledged ann 100", "1 purchase acknowledged ann 200",
                    "1 purchase acknowledged ann 300", "1 purchase a test ann 400", "1 purchase due ann 500",
                    "1 purchase acknowledged ann", "2 refund due ann 200",
                ])
            try await test.expectRows(
                "SELECT DISTINCT state FROM perennial.order_log WHERE cause = 'acknowledged'", [["delivered"]])
            try await test.expectSound()
        }
    }

    @Test("An app that does not exist is refused, with deliveries of another app and with none")
    func unknownApp() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            for ids in [[1], []] as [[Int64]] {
                let error = await #expect(throws: LedgerError.self) {
                    try await test.ledger.deliveries.acknowledge(ids, of: "com.example.none")
                }
                #expect(error?.kind == .unknownApp("com.example.none"))
            }
            #expect(try await test.deliveries() == ["1 purchase due ann 100"])
        }
    }

    @Test("Numbers that end a hundred keep apart, and each delivery says who acknowledged it")
    func hundreds() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.run("ALTER TABLE ledger.delivery ALTER COLUMN delivery_id RESTART WITH 98")
            for place in 0..<4 { try await test.buys("p\(place)", days: -2 + Double(place) / 10) }
            for (key, ids) in [(1, [99, 100]), (2, [98]), (3, [100, 101])] as [(Int32, [Int64])] {
                _ = try await test.ledger.acting(as: .key(key)).deliveries.acknowledge(ids, of: test.app.bundleID)
            }
            try await test.expectRows(
                "SELECT delivery_id, acknowledged_by FROM perennial.delivery_log ORDER BY delivery_id::int",
                [["98", "key 2"], ["99", "key 1"], ["100", "key 1"], ["101", "key 3"]])
            try await test.expectSound()
        }
    }
}
