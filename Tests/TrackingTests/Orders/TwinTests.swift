import Foundation
import Postgres
import SQL
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What Apple may have listed twice is given once, to one customer")
struct TwinTests {
    /// What is sent about one purchase that Apple lists under two ids.
    private enum Step: CaseIterable {
        /// Bob starts his app: the receipt has the first id.
        case bobsFirst
        /// Bob's service sends his receipt for his order: it has both ids.
        case bobsBoth
        /// Ann's device sends a receipt with the first id for her order, with a proof.
        case annsProof
        /// Ann's device sends bob's receipt for her order, with a proof.
        case annsProofOfBoth
    }

    private static func orders<Value>(of all: [Value]) -> [[Value]] {
        all.isEmpty
            ? [[]]
            : all.indices.flatMap { index in
                var rest = all
                let first = rest.remove(at: index)
                return orders(of: rest).map { [first] + $0 }
            }
    }

    private func ids(_ number: Int) -> [(id: String, product: ProductID)] {
        [("p\(number)", "coins"), ("q\(number)", "coins")]
    }

    private func take(
        _ step: Step, _ number: Int, _ mine: PlacedOrder, _ theirs: PlacedOrder, asOf: Double, in test: TestLedger
    ) async throws {
        let (bob, both) = ("bob \(number)", ids(number))
        switch step {
        case .bobsFirst:
            try await test.check(try await test.upload("a \(number)", by: bob), test.bought([both[0]], asOf: asOf))
        case .bobsBoth:
            let receipt = try await test.send("a \(number)", for: theirs, by: bob)
            try await test.check(receipt, test.bought(both, asOf: asOf))
        case .annsProof:
            let receipt = try await test.send("b \(number)", for: mine)
            try await test.check(receipt, test.bought([both[0]], asOf: asOf))
        case .annsProofOfBoth:
            try await test.check(try await test.send("a \(number)", for: mine), test.bought(both, asOf: asOf))
        }
    }

    private func assign(_ id: OriginalTransactionID, to customer: String, in test: TestLedger) async throws {
        _ = try await test.ledger.customers.assign(
            id, to: customer, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "called"))
    }

    @Test("In every order of arrival one order is paid and one delivery is due", arguments: [false, true])
    func arrivals(isGivenBetween: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for (number, steps) in Self.orders(of: Step.allCases).enumerated() {
                let (ann, bob) = ("ann \(number)", "bob \(number)")
                let (mine, theirs) = (try await test.place(by: ann), try await test.place(by: bob))
                for (place, step) in steps.enumerated() {
                    try await take(step, number, mine, theirs, asOf: -1 + Double(place) / 100, in: test)
                    if isGivenBetween, place == 0 { try await test.acknowledgeAll() }
                }
                let paid = try await test.text(
                    """
                    SELECT count(*) FROM ledger.purchase_order
                    WHERE order_id IN ('\(mine.id)', '\(theirs.id)') AND state IN ('paid', 'delivered')
                    """)
                let given = try await test.rows(
                    """
                    SELECT concat_ws(' ', d.turn, d.reason, COALESCE(d.skip_reason, d.state), d.customer) AS line
                    FROM perennial.delivery_log d WHERE d.transaction_id IN ('p\(number)', 'q\(number)')
                    ORDER BY d.delivery_id::bigint
                    """)
                #expect(given.count { $0.contains(" due ") || $0.contains(" acknowledged ") } == 1, "\(steps) \(given)")
                #expect(paid == "1", "\(steps) \(given)")
            }
            #expect(try await test.violations() == [])
        }
    }

    @Test("A possible duplicate of what moved to another customer stays one", arguments: ["assignment", "proof"])
    func twins(way: String) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let mine = try await test.place()
            let both: [(id: String, product: ProductID)] = [("p", "coins"), ("q", "coins")]
            try await test.check(try await test.upload("a", by: "bob"), test.bought(both))
            if way == "assignment" {
                try await assign("p", to: "ann", in: test)
            } else {
                try await test.check(try await test.send("b", for: mine), test.bought([both[0]], asOf: -0.9))
            }
            #expect(try await test.owners() == "p ann, q bob")
            #expect(try await test.log(of: mine).hasPrefix("created placed, paid "))
            let theirs = try await test.place(by: "bob")
            try await test.check(try await test.send("a", for: theirs, by: "bob"), test.bought(both, asOf: -0.8))
            #expect(try await test.log(of: theirs) == "created placed")
            let lines = try await test.deliveries()
            #expect(lines.filter { $0.contains(" due ") } == ["3 purchase due ann 100"], "\(lines)")
            #expect(try await test.violations() == [])
        }
    }

    @Test("What comes after the other one moved away, or was skipped by a person, is listed too")
    func later() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let mine = try await test.place()
            try await test.buys("p", by: "bob")
            try await test.check(try await test.send("b", for: mine), test.bought([("p", "coins")], asOf: -0.9))
            try await test.buys("q", by: "bob", asOf: -0.8)
            #expect(try await test.owners() == "p ann, q bob")
            #expect(
                try await test.deliveries() == [
                    "1 purchase claimed_by_order bob 100", "2 transfer claimed_by_order bob 100",
                    "3 purchase due ann 100", "1 purchase possible_duplicate bob 100",
                ])
            try await test.buys("r", by: "eve")
            let due = try await test.ledger.deliveries.read(
                of: test.app.bundleID, state: .due, customer: "eve", after: 0, limit: 1)
            _ = try await test.ledger.acting(as: .user("kim")).deliveries.skip(
                try #require(due.deliveries.first).id, of: test.app.bundleID, because: "a mistake")
            try await test.buys("s", by: "eve", asOf: -0.8)
            #expect(
                try await test.deliveries().suffix(2) == [
                    "1 purchase a mistake eve 100", "1 purchase possible_duplicate eve 100",
                ])
            #expect(try await test.violations() == [])
        }
    }

    @Test("The same instant alone makes no duplicates: two customers with receipts of their own get both")
    func strangers() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", by: "bob")
            try await test.buys("q", by: "ann")
            #expect(try await test.deliveries() == ["1 purchase due bob 100", "1 purchase due ann 100"])
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "Two that were given, or are due, before one customer had both stay so, and orders go on",
        arguments: ["merge", "assignment", "receipt"], [false, true])
    func boughtApart(way: String, isGiven: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (mine, theirs) = (try await test.place(), try await test.place(by: "bob"))
            try await test.check(try await test.send("a", for: mine), test.bought([("p", "coins")]))
            try await test.check(try await test.send("b", for: theirs), test.bought([("q", "coins")]))
            if isGiven { try await test.acknowledgeAll() }
            switch way {
            case "merge":
                _ = try await test.ledger.customers.merge(
                    "ann", into: "bob", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "called"))
            case "assignment": try await assign("p", to: "bob", in: test)
            default:
                try await test.check(
                    try await test.upload("c", by: "ann"), test.bought([("p", "coins"), ("q", "coins")], asOf: -0.9))
            }
            for (customer, days) in [("ann", -0.9), ("bob", -0.8)] {
                let next = try await test.place(by: customer, days: -1)
                #expect(try await test.log(of: next).hasPrefix("created placed"))
                try await test.buys("next of \(customer)", by: customer, days: days)
            }
            let lines = try await test.deliveries()
            #expect(lines.allSatisfy { !$0.contains("possible_duplicate") }, "\(lines)")
            // What is due moves with an assigned purchase, and its order is unpaid again.
            for order in way == "assignment" && !isGiven ? [theirs] : [mine, theirs] {
                let states = try await test.log(of: order).split(separator: ", ").map { $0.prefix { $0 != " " } }
                #expect(["paid", "delivered"].contains(states.last), "\(states)")
            }
            #expect(try await test.violations() == [])
        }
    }

    @Test("A token that is learnt after the other one moved away gives what was skipped beside it")
    func tokenLater() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let mine = try await test.place()
            let both: [(id: String, product: ProductID)] = [("p", "coins"), ("q", "coins")]
            try await test.check(try await test.upload("a", by: "bob"), test.bought(both))
            try await test.check(try await test.send("b", for: mine), test.bought([both[0]], asOf: -0.9))
            let answer = test.bought([both[0]], asOf: -0.8).carrying(mine.appAccountToken)
            try await test.check(try await test.send("b", for: mine), answer)
            #expect(try await test.owners() == "p ann, q bob")
            let due = try await test.deliveries().filter { $0.contains(" due ") }
            #expect(due == ["3 purchase due ann 100", "3 purchase due bob 100"])
            #expect(try await test.violations() == [])
        }
    }
}
