import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// How Apple dates a purchase of 30 days ago later.
private enum LaterDate: String, CaseIterable, CustomTestStringConvertible {
    /// A restored copy, with an id of its own, and the first date beside it.
    case restored
    /// The same transaction.
    case sameTransaction
    /// A restored copy in the device's receipt alone, without the first date.
    case deviceOnly

    var testDescription: String { rawValue }

    /// What Apple says now of what it said before.
    func answer(_ first: Finding, in test: TestLedger) -> Finding {
        guard case .verified(var evidence) = first else { return first }
        evidence.asOf = test.at(-0.1)
        let now = evidence.asOf - .minutes(1)
        evidence.transactions = evidence.transactions.map { row in
            var row = row
            if self != .deviceOnly { row.originalPurchasedAt = row.purchasedAt }
            if self != .sameTransaction { row.transactionID = TransactionID("copy of \(row.transactionID)") }
            if self == .deviceOnly { row.source = .deviceReceipt }
            (row.purchasedAt, row.asOf) = (now, evidence.asOf)
            return row
        }
        return .verified(evidence)
    }
}

@Suite("The earliest date that Apple ever gave for a purchase counts")
struct EarliestDateTests {
    @Test("A restored copy takes nothing from an uploader and pays no new order", arguments: LaterDate.allCases)
    fileprivate func ofAnother(later: LaterDate) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let first = test.bought([("l", "themes")], days: -30)
            try await test.check(try await test.upload("of bob", by: "bob"), first)
            let order = try await test.place("themes", days: -0.2)
            try await test.check(try await test.send("copy", for: order), later.answer(first, in: test))
            #expect(try await test.log(of: order) == "created placed")
            #expect(try await test.text("SELECT customer FROM perennial.purchase_now") == "bob")
            #expect(try await test.date() == test.at(-30).iso8601)
            #expect(try await test.deliveries() == ["1 purchase due bob"])
            #expect(try await test.violations() == [])
        }
    }

    @Test("A copy that comes alone is as old as the purchase", arguments: [LaterDate.restored, .sameTransaction])
    fileprivate func alone(later: LaterDate) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place("season", days: -0.2)
            let answer = later.answer(test.bought([("s", "season")], days: -30), in: test)
            try await test.check(try await test.send("copy", for: order), answer)
            #expect(try await test.log(of: order) == "created placed")
            #expect(try await test.date() == test.at(-30).iso8601)
        }
    }

    @Test(
        "What was bought before deliveries began is never due, whatever date a copy has", arguments: LaterDate.allCases)
    fileprivate func deliversSince(later: LaterDate) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let first = test.bought([("l", "themes")], days: -130)
            try await test.check(try await test.upload("a"), first)
            try await test.check(try await test.upload("b"), later.answer(first, in: test))
            #expect(try await test.deliveries() == [])
        }
    }

    @Test("An old purchase that was given pays no later order, whatever date a copy has", arguments: LaterDate.allCases)
    fileprivate func given(later: LaterDate) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let first = test.bought([("s", "season")], days: -30)
            try await test.check(try await test.upload("a"), first)
            try await test.acknowledgeAll()
            let order = try await test.place("season", days: -0.2)
            let again = later.answer(first, in: test)
            try await test.check(try await test.send("b", for: order), again)
            try await test.check(try await test.upload("c"), again)
            #expect(try await test.log(of: order) == "created placed")
            #expect(try await test.deliveries() == ["1 purchase acknowledged ann"])
        }
    }

    @Test("An order that a copy paid before its first date was known is unpaid again, while what it gives is due")
    func learntLater() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let first = test.bought([("s", "season")], days: -30)
            let order = try await test.place("season", days: -0.2)
            try await test.check(
                try await test.send("copy", for: order), LaterDate.deviceOnly.answer(first, in: test))
            #expect(try await test.log(of: order) == "created placed, paid proof")
            try await test.check(try await test.upload("whole"), first)
            #expect(try await test.log(of: order) == "created placed, paid proof, created moved")
            #expect(try await test.deliveries() == ["1 purchase due ann"])
            #expect(try await test.violations() == [])
        }
    }
}

extension TestLedger {
    /// When the one purchase was bought.
    fileprivate func date() async throws -> String {
        try await text(
            """
            SELECT to_char(purchased_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') FROM perennial.purchase_now
            """)
    }
}
