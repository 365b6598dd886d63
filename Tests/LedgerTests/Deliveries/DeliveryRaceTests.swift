import Foundation
import Postgres
import SQL
import TestSupport
import Testing

@testable import Ledger

private let reused = OncePerSuite<ReusedDatabase>.database()

@Suite("An acknowledgement and a change of what it acknowledges wait for each other", .serialized, reused)
struct DeliveryRaceTests {
    private static let blocked = Statement.test(
        """
        SELECT count(*) AS blocked FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'
        """)

    @Test(
        "A refund that arrives during an acknowledgement is taken back",
        arguments: [
            "SELECT ledger.acknowledge_unchanged('com.example.app', ARRAY[1]::bigint[], 'key 1')",
            "SELECT ledger.settle_deliveries(1, ARRAY[1]::bigint[], 'key 1', NULL)",
        ])
    func refundWaits(acknowledge: String) async throws {
        try await withLedger(in: reused) { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            let refund = try await test.database.transaction { transaction in
                try transaction.script(acknowledge)
                let refund = Task { try await test.buys("p", asOf: -0.8, refunded: -0.9) }
                try Self.waitUntilBlocked(transaction)
                return refund
            }
            try await refund.value
            #expect(try await test.deliveries() == ["1 purchase acknowledged ann 100", "2 refund due ann 100"])
        }
    }

    @Test("An acknowledgement that arrives during a refund brings the take-back")
    func acknowledgementWaits() async throws {
        try await withLedger(in: reused) { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            let due = try await test.due()
            let acknowledgement = try await test.database.transaction { transaction in
                try transaction.script(
                    """
                    UPDATE ledger.purchase SET revoked_at = now();
                    SELECT ledger.store_turns(ARRAY(SELECT purchase_id FROM ledger.purchase), '{}')
                    """)
                let acknowledgement = Task {
                    try await test.ledger.deliveries.acknowledge(due, of: test.app.bundleID)
                }
                try Self.waitUntilBlocked(transaction)
                return acknowledgement
            }
            #expect(try await acknowledgement.value.map(\.isFirst) == [true])
            #expect(try await test.deliveries() == ["1 purchase acknowledged ann 100", "2 refund due ann 100"])
        }
    }

    @Test("A delivery that gets its position while it is skipped does not stay in the queue")
    func placedMeanwhile() async throws {
        try await withLedger(in: reused) { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            let id = try #require(Int64(try await test.text("SELECT delivery_id FROM ledger.delivery")))
            let skip = try await test.database.transaction { transaction in
                try transaction.query(Queries.lockQueue)
                try transaction.query(Queries.placeDeliveries, [.int4(10)])
                let skip = Task {
                    try await test.ledger.deliveries.skip(id, of: test.app.bundleID, because: "a test")
                }
                try Self.waitUntilBlocked(transaction)
                return skip
            }
            #expect(try await skip.value.isFirst)
            #expect(try await test.due() == [])
            #expect(try await test.text("SELECT count(*) FROM ledger.due_delivery") == "0")
        }
    }

    /// No session waited for a lock.
    private struct NotBlocked: Error {}

    /// Waits until another session waits for a lock of this transaction.
    private static func waitUntilBlocked(_ transaction: Transaction) throws {
        let end = ContinuousClock.now + .seconds(20)
        while try transaction.query(blocked).first?.int8("blocked") == 0 {
            guard ContinuousClock.now < end else { throw NotBlocked() }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }
}

extension TestLedger {
    /// The numbers of all due deliveries.
    fileprivate func due() async throws -> [Int64] {
        try await ledger.deliveries.read(
            of: app.bundleID, DeliveryFilter(state: .due), after: 0, limit: 100
        ).deliveries.map(\.id)
    }
}
