import Postgres
import SQL
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("The status counts receipts, lanes and workers")
struct StatusTests {
    private func schedule(_ test: TestLedger, _ receipt: ReceiptID, _ columns: String) async throws {
        try await test.run("UPDATE ledger.poll_schedule SET \(columns) WHERE receipt_id = \(receipt)")
    }

    @Test("Lanes count what is scheduled, due, overdue and in flight")
    func lanes() async throws {
        try await withLedger { test in
            let receipts = try await ["a", "b", "c", "d"].asyncMap { try await test.upload($0) }
            try await test.upload("e", imported: true)
            for (receipt, due) in zip(receipts, ["1 hour", "30 seconds", "-1 hour", "-2 hours"]) {
                try await schedule(
                    test, receipt,
                    "lane = 'sweep', due_at = now() - interval '\(due)', scheduled_for = now() - interval '\(due)'")
            }
            _ = try await test.claim(receipts[2])
            let lanes = try await test.ledger.operations.status().lanes
            #expect(lanes.map(\.lane) == [.imported, .sweep])
            let sweep = try #require(lanes.last)
            #expect([sweep.receipts, sweep.due, sweep.overdue, sweep.inFlight] == [4, 2, 1, 1])
            let next = try #require(sweep.nextDueAt)
            #expect(next < test.at(0))
            #expect(lanes[0].due == 1 && lanes[0].overdue == 0)
            #expect(sweep.lagSeconds.map { (3600..<3660).contains($0) } == true)
            #expect(lanes[0].lagSeconds.map { (0..<60).contains($0) } == true)
            #expect(sweep.countedTo == 10_000)
        }
    }

    @Test("The lane of imports is as late as the one that was stored first, wherever in the line it stands")
    func importLag() async throws {
        try await withLedger { test in
            let (near, far) = (
                try await test.upload("near", imported: true), try await test.upload("far", imported: true)
            )
            try await schedule(
                test, near, "due_at = timestamptz '1900-01-02 00:00Z', scheduled_for = now() - interval '5 s'")
            try await schedule(
                test, far, "due_at = timestamptz '1950-01-01 00:00Z', scheduled_for = now() - interval '2 h'")
            #expect(try await lag(test).allSatisfy { (7200..<7260).contains($0) })
            let quota = Quota(app: test.app, lane: .imported, receipts: 9)
            #expect(try await test.ledger.claims.claim(for: test.worker, [quota], leaseSeconds: 60).count == 2)
            #expect(try await test.ledger.gauge(.dueLag, ("lane", "import")) == 0)
            #expect(try await test.ledger.operations.status().lanes.first?.lagSeconds == nil)
        }
    }

    /// Of the lane of imports, as metrics and as status say it.
    private func lag(_ test: TestLedger) async throws -> [Double] {
        let gauge = try await test.ledger.gauge(.dueLag, ("lane", "import"))
        let status = try await test.ledger.operations.status().lanes.first { $0.lane == .imported }
        return [try #require(gauge), try #require(status?.lagSeconds)]
    }

    @Test("A process that checks single receipts on request does not count as a worker")
    func workers() async throws {
        try await withLedger { test in
            let before = try await test.ledger.operations.status().workers
            _ = try await test.ledger.claims.startWorker(host: "h", process: 1, singly: true)
            #expect(try await test.ledger.operations.status().workers == before)
            #expect(try await test.ledger.gauge(.workers) == Double(before))
            _ = try await test.ledger.claims.startWorker(host: "h", process: 2)
            #expect(try await test.ledger.operations.status().workers == before + 1)
            #expect(try await test.ledger.gauge(.workers) == Double(before + 1))
        }
    }

    @Test("Small ledgers are counted, large ones estimated in the same time")
    func totals() async throws {
        try await withNewLedger { test in
            for name in 0..<40 { try await test.upload("r\(name)") }
            #expect(try await test.ledger.operations.status().lastCheckedAt == nil)
            let bought = try await test.upload("r0")
            try await test.check(bought, purchase("7", at: test.at(-9), asOf: test.at(-2)))
            #expect(try await test.ledger.operations.status().lastCheckedAt != nil)
            let receipt = try await test.upload("verified")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            try await test.run("ANALYZE ledger.receipt; ANALYZE ledger.subscription")
            let counted = try await test.ledger.operations.status()
            #expect(!counted.isEstimated)
            #expect([counted.receipts, counted.verified, counted.unverified, counted.subscriptions] == [41, 2, 39, 1])
            let row = try #require(try await test.ledger.query(Queries.statusTotals, [.int8(10)]).first)
            #expect(try row.bool("estimated"))
            #expect(try row.int8("receipts") == 41)
            #expect(try row.int8("unverified") == 39)
            #expect(try row.int8("subscriptions") == 1)
        }
    }

    @Test("Erased receipts are not among those that wait for an answer, neither counted nor estimated")
    func erasedTotals() async throws {
        try await withNewLedger { test in
            for name in 0..<40 { try await test.upload("r\(name)") }
            try await test.run(
                """
                UPDATE ledger.receipt SET erased_at = now()
                WHERE receipt_id IN (SELECT receipt_id FROM ledger.receipt ORDER BY receipt_id LIMIT 10);
                ANALYZE ledger.receipt
                """)
            for limit in [100, 10] as [Int64] {
                let row = try #require(try await test.ledger.query(Queries.statusTotals, [.int8(limit)]).first)
                #expect(try row.int8("receipts") == 30 && row.int8("unverified") == 30, "\(limit)")
            }
        }
    }

    @Test("Deliveries of production that have been due for more than an hour are counted, with the oldest")
    func lateDeliveries() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for (id, quantity) in [("p", 1), ("q", 2), ("r", 3), ("s", 4)] {
                try await test.buys(id, quantity: quantity)
            }
            #expect(try await test.ledger.operations.status().lateDeliveries.isEmpty)
            let fresh = try #require(try await test.ledger.deliveries.due().first)
            #expect(fresh.deliveries == 4 && fresh.seconds < 60 && fresh.bundleID == test.app.bundleID)
            try await test.run(
                """
                UPDATE ledger.delivery SET created_at = now() - units * interval '1 minute';
                UPDATE ledger.delivery SET created_at = now() - interval '59 minutes' WHERE units = 100;
                UPDATE ledger.delivery SET environment = 'Sandbox' WHERE units = 400;
                UPDATE ledger.due_delivery SET environment = 'Sandbox' WHERE delivery_id = 4;
                """)
            let late = try await test.ledger.operations.status().lateDeliveries
            #expect(late.map(\.deliveries) == [2] && late[0].isMore == false)
            #expect((18_000..<18_060).contains(late[0].seconds))
            #expect(try await test.ledger.deliveries.due(of: "com.example.none").isEmpty)
            #expect(try await test.ledger.deliveries.due(in: .sandbox).map(\.deliveries) == [1])
            try await test.acknowledgeAll()
            #expect(try await test.ledger.deliveries.due().isEmpty)
        }
    }

    @Test("Where counting stops is said")
    func bound() async throws {
        try await withLedger { test in
            for name in ["a", "b", "c"] { try await test.upload(name) }
            try await test.run(
                "INSERT INTO ledger.app (bundle_id, name) SELECT 'app.' || g, 'app' FROM generate_series(1, 99) g")
            let row = try #require(try await test.ledger.query(Queries.status, [.int8(2)]).first)
            #expect(try row.int8("at_most") == 100)
            try await test.run("DELETE FROM ledger.app WHERE app_id > 1")
            let few = try #require(try await test.ledger.query(Queries.status, [.int8(200)]).first)
            #expect(try few.int8("at_most") == 200)
        }
    }
}

extension Array where Element == String {
    fileprivate func asyncMap<Result>(_ transform: (String) async throws -> Result) async throws -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await transform(element)) }
        return results
    }
}
