import Foundation
import Postgres
import SQL
import TestSupport
import Testing

@testable import Tracking

@Suite("An acknowledgement and a change of what it acknowledges wait for each other")
struct DeliveryRaceTests {
    @Test(
        "A refund that arrives during an acknowledgement is taken back",
        arguments: [
            "SELECT ledger.acknowledge_unchanged('com.example.app', ARRAY[1]::bigint[], 'key 1')",
            "SELECT ledger.settle_deliveries(1, ARRAY[1]::bigint[], 'key 1', NULL)",
        ])
    func refundWaits(acknowledge: String) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            let refund = try await test.database.transaction { transaction in
                try transaction.script(acknowledge)
                let refund = Task { try await test.buys("p", asOf: -0.8, refunded: -0.9) }
                try transaction.waitUntilAnotherIsBlocked()
                return refund
            }
            try await refund.value
            #expect(try await test.deliveries() == ["1 purchase acknowledged ann 100", "2 refund due ann 100"])
        }
    }

    @Test("An acknowledgement that arrives during a refund brings the take-back")
    func acknowledgementWaits() async throws {
        try await withLedger { test in
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
                try transaction.waitUntilAnotherIsBlocked()
                return acknowledgement
            }
            #expect(try await acknowledgement.value.map(\.isFirst) == [true])
            #expect(try await test.deliveries() == ["1 purchase acknowledged ann 100", "2 refund due ann 100"])
        }
    }

    @Test("A delivery that gets its position while it is skipped does not stay in the queue")
    func placedMeanwhile() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            let id = try #require(Int64(try await test.text("SELECT delivery_id FROM ledger.delivery")))
            let skip = try await test.database.transaction { transaction in
                try transaction.query(Queries.lockQueue)
                try transaction.query(Queries.placeDeliveries, [.int4(10)])
                let skip = Task {
                    try await test.ledger.deliveries.skip(id, of: test.app.bundleID, because: "a test")
                }
                try transaction.waitUntilAnotherIsBlocked()
                return skip
            }
            #expect(try await skip.value.isFirst)
            #expect(try await test.due() == [])
            #expect(try await test.text("SELECT count(*) FROM ledger.due_delivery") == "0")
        }
    }

    /// What a writer of the queue does next: it skips the delivery.
    private static let skip = """
        UPDATE ledger.delivery SET skipped_at = now(), skipped_by = 'kim', skip_reason = 'a test';
        DELETE FROM ledger.due_delivery;
        """

    /// What the other writer does.
    enum Other: CaseIterable { case places, merges }

    @Test("The writer that locked the queue gets the delivery too", arguments: Other.allCases)
    func queueBeforeDelivery(other: Other) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            let waiting = try await test.database.transaction { transaction in
                try transaction.script("SELECT FROM ledger.due_delivery FOR UPDATE")
                let waiting = Task {
                    switch other {
                    case .places: try await test.ledger.deliveries.place()
                    case .merges:
                        _ = try await test.ledger.customers.merge(
                            "ann", into: "ann's account", of: test.app.bundleID,
                            deciding: ManualDecision(by: "kim", because: "a test"))
                    }
                }
                try transaction.waitUntilAnotherIsBlocked()
                try transaction.script(Self.skip)
                return waiting
            }
            try await waiting.value
            let customer = other == .places ? "ann" : "ann's account"
            #expect(try await test.deliveries() == ["1 purchase a test \(customer) 100"])
            try await test.expectSound()
        }
    }
}

extension TestLedger {
    /// The numbers of all due deliveries.
    fileprivate func due() async throws -> [Int64] {
        try await ledger.deliveries.read(
            of: app.bundleID, state: .due, after: 0, limit: 100
        ).deliveries.map(\.id)
    }
}
