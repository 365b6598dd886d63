import Foundation
import Postgres
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

private let reused = OncePerSuite<ReusedDatabase>.database()

/// The names of customers and what is theirs, as a child would draw it: each name is below the one it was merged into, and
/// each thing lies at one name. The name on top has all below.
private struct Names {
    struct Thing {
        var home: String?
        /// The order that its token or its proof names, and the name that it was placed for.
        var order: PlacedOrder?
        var orderedBy: String?
        /// Whether the order is named by a token, not by a proof.
        var hasToken = false
        /// When it was bought, in minutes; its order was placed a minute before.
        var minute: Int64 = 0
        /// Whether a person gave it to its home.
        var isAssigned = false
        /// Who was on top as it was given.
        var givenTo: String?
    }

    var above: [String: String] = [:]
    var things: [String: Thing] = [:]
    var erased: Set<String> = []

    func top(of name: String) -> String { above[name].map(top) ?? name }

    func owner(of thing: Thing) -> String { thing.home.map(top) ?? "-" }

    /// What pays the orders of the name on top, by the rule read aloud; `open` are those that are not delivered, and
    /// `spent` is what paid those that are.
    func payers(of top: String, open: Set<String>, spent: Set<String>) -> [String: String] {
        let ids = things.keys.sorted()
        let orders = ids.compactMap { id -> PayableOrder? in
            guard let thing = things[id], let order = thing.order, thing.orderedBy.map(self.top) == top,
                open.contains(order.id)
            else { return nil }
            return PayableOrder(
                id: order.id, customer: 1, productID: "coins", quantity: 1,
                orderedAt: Instant(milliseconds: 0) + .minutes(thing.minute - 1), isOpen: true)
        }
        let transactions = ids.indices.compactMap { place -> PayingTransaction? in
            guard let thing = things[ids[place]], owner(of: thing) == top, !spent.contains(ids[place]),
                thing.givenTo.map({ self.top(of: $0) == top }) ?? true
            else { return nil }
            var one = PayingTransaction(
                .purchase(Int64(place)), in: .production, productID: "coins", quantity: 1,
                purchasedAt: Instant(milliseconds: 0) + .minutes(thing.minute), owner: 1)
            one.isAcknowledged = thing.givenTo != nil
            if let order = thing.order {
                if thing.hasToken {
                    (one.tokenNames, one.accountToken) = (.order(order.id), order.appAccountToken)
                } else {
                    one.provedFor = [order.id]
                }
            }
            return one
        }
        return modelPayments(transactions, orders).mapValues { ids[Int($0.number)] }
    }
}

@Suite("Names that are merged and split in every way keep what is theirs", .serialized, reused)
struct SplitStoryTests {
    private static let names = ["e", "f", "g", "h", "k"]

    @Test("Owners, orders and what was given equal the drawing", arguments: 1...3 as ClosedRange<UInt64>)
    func stories(block: UInt64) async throws {
        for number in 0..<3 as Range<UInt64> {
            try await withLedger(in: reused) { test in
                try await test.sellDeliverables()
                var random = Seeded(seed: 8_000 + block * 100 + number)
                print(random)
                var (drawing, told): (Names, [String]) = (Names(), [])
                for name in Self.names { try await test.upload("first of \(name)", by: name) }
                for turn in 0..<22 {
                    told.append(try await take(turn, of: &drawing, &random, in: test))
                    try await expect(drawing, Comment("\(random.seed): \(told.joined(separator: ", "))"), in: test)
                }
                #expect(try await test.violations() == [], "\(random.seed): \(told)")
            }
        }
    }

    /// Takes one step, in the ledger and in the drawing; returns what it was.
    private func take(
        _ turn: Int, of drawing: inout Names, _ random: inout Seeded, in test: TestLedger
    ) async throws -> String {
        let left = Self.names.filter { !drawing.erased.contains($0) }.shuffled(using: &random)
        guard left.count > 1 else { return "nothing" }
        let (one, other) = (left[0], left[1])
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<8:
            let id = "\(turn)"
            let tie = ["", "token", "proof"].randomElement(using: &random) ?? ""
            try await buy(id, tie, by: one, at: turn, of: &drawing, in: test)
            return "\(one) buys \(id) \(tie)"
        case 8..<12:
            guard drawing.above[one] == nil, drawing.top(of: other) != one else { return "nothing" }
            try await test.merge(one, into: other)
            drawing.above[one] = drawing.top(of: other)
            return "\(one) into \(other)"
        case 12..<16:
            guard drawing.above[one] != nil else { return "nothing" }
            try await test.split(one)
            drawing.above[one] = nil
            return "split \(one)"
        case 16:
            guard let id = drawing.things.filter({ $0.value.home != nil }).keys.sorted().randomElement(using: &random),
                let thing = drawing.things[id]
            else { return "nothing" }
            try await test.assign(OriginalTransactionID(id), to: one)
            // What is theirs already needs no decision.
            let top = drawing.top(of: one)
            if drawing.owner(of: thing) != top {
                drawing.things[id]?.home = top
                drawing.things[id]?.isAssigned = true
            }
            return "\(id) assigned to \(one)"
        case 17, 18:
            let due = try await test.ledger.deliveries.read(
                of: test.app.bundleID, DeliveryFilter(state: .due, customer: one), after: 0, limit: 100
            ).deliveries
            _ = try await test.ledger.deliveries.acknowledge(due.map(\.id), of: test.app.bundleID)
            let top = drawing.top(of: one)
            for (id, thing) in drawing.things where thing.givenTo == nil && drawing.owner(of: thing) == top {
                drawing.things[id]?.givenTo = top
            }
            return "\(one) is given"
        default:
            guard turn > 12 else { return "nothing" }
            let top = drawing.top(of: one)
            _ = try await test.ledger.customers.erase(
                one, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "asked for it"))
            for name in Self.names where drawing.top(of: name) == top { drawing.erased.insert(name) }
            for (id, thing) in drawing.things where drawing.owner(of: thing) == top {
                drawing.things[id]?.home = nil
            }
            return "\(one) erased"
        }
    }

    /// A name buys coins: with the token or the proof of an order, or for none.
    private func buy(
        _ id: String, _ tie: String, by name: String, at turn: Int, of drawing: inout Names, in test: TestLedger
    ) async throws {
        let minute = Int64(turn) * 30
        func days(_ minute: Int64) -> Double { -2 + Double(minute) / 1_440 }
        var order: PlacedOrder?
        if tie != "" { order = try await test.place(by: name, days: days(minute - 1)) }
        var answer = test.bought([(id, "coins")], days: days(minute), asOf: -1 + Double(turn) / 100)
        if let order, tie == "token" { answer = answer.carrying(order.appAccountToken) }
        let receipt: ReceiptID
        if let order, tie == "proof" {
            receipt = try await test.send("receipt of \(id)", for: order)
        } else {
            receipt = try await test.upload("receipt of \(id)", by: name)
        }
        try await test.check(receipt, answer)
        let top = drawing.top(of: name)
        drawing.things[id] = Names.Thing(
            home: top, order: order, orderedBy: order.map { _ in top }, hasToken: tie == "token", minute: minute)
    }

    private func expect(_ drawing: Names, _ comment: Comment, in test: TestLedger) async throws {
        let owned = drawing.things.sorted { $0.key < $1.key }.map { "\($0.key) \(drawing.owner(of: $0.value))" }
        let owners = try await test.rows(
            "SELECT transaction_id || ' ' || COALESCE(customer, '-') FROM perennial.purchase_now")
        #expect(owners.sorted() == owned.sorted(), comment)
        let merged = try await test.rows(
            """
            SELECT c.name || ' ' || h.name FROM ledger.customer c
            JOIN ledger.customer h ON h.customer_id = c.merged_into WHERE c.erased_at IS NULL
            """)
        let below = drawing.above.keys.filter { !drawing.erased.contains($0) }
        #expect(merged.sorted() == below.map { "\($0) \(drawing.top(of: $0))" }.sorted(), comment)
        // What is due is due to the owner, and what was given is theirs who were given it.
        let deliveries = try await test.rows(
            """
            SELECT transaction_id || ' ' || state || ' ' || customer FROM perennial.delivery_log
            WHERE state <> 'skipped' AND customer NOT LIKE 'erased-%'
            """)
        let expected = drawing.things.compactMap { id, thing -> String? in
            if let given = thing.givenTo {
                return drawing.erased.contains(given) ? nil : "\(id) acknowledged \(drawing.top(of: given))"
            }
            return thing.home == nil ? nil : "\(id) due \(drawing.owner(of: thing))"
        }
        #expect(deliveries.sorted() == expected.sorted(), comment)
        let states = try await test.database.query(
            .test(
                """
                SELECT o.order_id::text AS order_id, o.state IN ('created', 'paid') AS is_open, p.original_transaction_id AS payer
                FROM ledger.purchase_order o LEFT JOIN ledger.purchase p USING (purchase_id)
                """))
        var (open, spent, payers): (Set<String>, Set<String>, [String: String]) = ([], [], [:])
        for row in states {
            let (order, payer) = (try row.text("order_id"), try row.textIfPresent("payer"))
            if try row.bool("is_open") {
                open.insert(order)
                payers[order] = payer
            } else if let payer {
                spent.insert(payer)
            }
        }
        let tops = Set(Self.names.filter { !drawing.erased.contains($0) }.map(drawing.top))
        let model = tops.map { drawing.payers(of: $0, open: open, spent: spent) }
        #expect(payers == model.reduce(into: [:]) { $0.merge($1) { first, _ in first } }, comment)
        for (id, thing) in drawing.things where thing.home != nil && !thing.isAssigned {
            guard let order = thing.order else { continue }
            #expect(payers[order.id] == id || thing.givenTo != nil && spent.contains(id), comment)
        }
    }
}
