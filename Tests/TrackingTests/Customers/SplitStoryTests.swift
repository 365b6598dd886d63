import Foundation
import Postgres
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// The names of customers and what is theirs, as a child would draw it: each name is below the one it was merged into, and
/// each thing and each order lies at one name. The name on top has all below.
private struct Names {
    struct Thing {
        var home: String?
        /// The order that its token or its proof names.
        var order: String?
        /// The token, without one a proof names the order.
        var token: String?
        /// When it was bought, in minutes.
        var minute: Int64 = 0
        /// Whether a person gave it to its home.
        var isAssigned = false
        /// Who was on top as it was given.
        var givenTo: String?
        /// Who claimed it by a proof, and owns it since.
        var claimedBy: String?
    }

    struct Ordered {
        let id: String
        let home: String
        let minute: Int64
        /// What was given for it; then it is delivered.
        var given: String?
    }

    var above: [String: String] = [:]
    var things: [String: Thing] = [:]
    var orders: [Ordered] = []
    var erased: Set<String> = []

    func top(of name: String) -> String { above[name].map(top) ?? name }

    func owner(of thing: Thing) -> String { thing.home.map(top) ?? "-" }

    /// What pays the orders of the name on top that are not delivered, by the rule read aloud. A proof of theirs may claim
    /// the thing `free`.
    func payers(of top: String, claiming free: String? = nil) -> [String: String] {
        let open = orders.filter { $0.given == nil && self.top(of: $0.home) == top }.sorted { $0.id < $1.id }.map {
            order in
            PayableOrder(
                id: order.id, customer: 1, productID: "coins", quantity: 1,
                orderedAt: Instant(milliseconds: 0) + .minutes(order.minute), isOpen: true)
        }
        let (ids, spent) = (things.keys.sorted(), Set(orders.compactMap(\.given)))
        let transactions = ids.indices.compactMap { place -> PayingTransaction? in
            guard let thing = things[ids[place]], owner(of: thing) == top || ids[place] == free,
                !spent.contains(ids[place]), thing.givenTo.map({ self.top(of: $0) == top }) ?? true
            else { return nil }
            var one = PayingTransaction(
                .purchase(Int64(place)), in: .production, productID: "coins", quantity: 1,
                purchasedAt: Instant(milliseconds: 0) + .minutes(thing.minute), owner: thing.home.map { _ in 1 })
            (one.isAcknowledged, one.isClaimable) = (thing.givenTo != nil, thing.home == nil)
            one.isClaimed = thing.claimedBy != nil
            one.accountToken = thing.token
            if let order = thing.order {
                if thing.token == nil { one.provedFor = [order] } else { one.tokenNames = .order(order) }
            }
            return one
        }
        return modelPayments(transactions, open, isClaiming: free != nil).mapValues { ids[Int($0.number)] }
    }

    /// What pays the orders of all names that are not delivered.
    var payers: [String: String] {
        let tops = Set(orders.map(\.home).filter { !erased.contains($0) }.map(top))
        return tops.map { payers(of: $0) }.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
    }

    /// Whether a thing of a customer names the order of another one, and one of both is meant by a name.
    func isEntangled(_ name: String) -> Bool {
        things.values.contains { thing in
            let ends = orders.filter { $0.id == thing.order }.map { top(of: $0.home) } + [owner(of: thing)]
            return Set(ends).count > 1 && ends.contains(top(of: name))
        }
    }

    func hasThings(_ name: String) -> Bool { things.values.contains { $0.home == name } }

    /// A name to merge, so that an order that waits meets what the other one buys.
    func joining(among names: [String]) -> String? {
        let (free, payers) = (names.filter { above[$0] == nil }, payers)
        return free.first { name in orders.contains { $0.home == name && payers[$0.id] == nil } } ?? free.first
    }

    /// A name to split, first one that leaves with nothing but an order, which another name's purchase pays.
    func leaving(among names: [String]) -> String? {
        let (below, payers) = (names.filter { above[$0] != nil }, payers)
        return below.first { name in
            !hasThings(name) && orders.contains { $0.home == name && payers[$0.id] != nil }
        } ?? below.first
    }

    /// Notes what follows from a step: an order is delivered once what pays it was given, and a claim ends with the owner.
    mutating func settle() {
        let payers = payers
        for index in orders.indices {
            guard let payer = payers[orders[index].id], things[payer]?.givenTo != nil else { continue }
            orders[index].given = payer
        }
        for (id, thing) in things where thing.claimedBy != owner(of: thing) { things[id]?.claimedBy = nil }
    }
}

@Suite("Names that are merged and split in every way keep what is theirs")
struct SplitStoryTests {
    private static let names = ["e", "f", "g", "h", "k"]

    @Test("Owners, orders and what was given equal the drawing", arguments: 1...3 as ClosedRange<UInt64>)
    func stories(block: UInt64) async throws {
        for number in 0..<4 as Range<UInt64> {
            try await withLedger { test in
                try await test.sellDeliverables()
                var random = Seeded(seed: 8_000 + block * 100 + number)
                print(random)
                var (drawing, told): (Names, [String]) = (Names(), [])
                try await test.run(
                    """
                    INSERT INTO ledger.customer (app_id, name)
                    SELECT \(test.app.id), unnest('{\(Self.names.joined(separator: ","))}'::text[])
                    """)
                for turn in 0..<20 {
                    let step = try await take(turn, of: &drawing, &random, in: test)
                    guard let step else { continue }
                    drawing.settle()
                    told.append(step)
                    try await expect(drawing, Comment("\(random.seed): \(told.joined(separator: ", "))"), in: test)
                }
                #expect(try await test.violations() == [], "\(random.seed): \(told)")
            }
        }
    }

    /// Takes one step, in the ledger and in the drawing; returns what it was, nil where it is none.
    private func take(
        _ turn: Int, of drawing: inout Names, _ random: inout Seeded, in test: TestLedger
    ) async throws -> String? {
        let left = Self.names.filter { !drawing.erased.contains($0) }.shuffled(using: &random)
        guard left.count > 1 else { return nil }
        let one = left[0]
        let late = ([5, 5, 5, -1] as [Int64]).randomElement(using: &random) ?? 5
        if let claim = try await claim(by: one, late: late, of: &drawing, in: test) { return claim }
        switch Int.random(in: 0..<25, using: &random) {
        case 0..<7:
            let id = "\(turn)"
            let tie = ["", "", "token", "proof"].randomElement(using: &random) ?? ""
            try await buy(id, tie, by: one, at: turn, of: &drawing, in: test)
            return "\(one) buys \(id) \(tie)"
        case 7..<11:
            // Who bought nothing often orders.
            let name = Bool.random(using: &random) ? left.first { !drawing.hasThings($0) } ?? one : one
            try await order(by: name, at: Int64(turn) * 30 - 1, of: &drawing, in: test)
            return "\(name) orders"
        case 11..<15:
            guard let name = drawing.joining(among: left), let into = left.first(where: { drawing.top(of: $0) != name })
            else {
                return nil
            }
            try await test.merge(name, into: into)
            drawing.above[name] = drawing.top(of: into)
            return "\(name) into \(into)"
        case 15..<18:
            guard let name = drawing.leaving(among: left) else { return nil }
            try await test.split(name)
            drawing.above[name] = nil
            return "split \(name)"
        case 18..<21:
            // What was assigned is often assigned again.
            let owned = drawing.things.filter { $0.value.home != nil }
            let again = owned.filter { $0.value.isAssigned && $0.value.givenTo == nil }
            let some = again.isEmpty || Bool.random(using: &random) ? owned : again
            guard let id = some.keys.sorted().randomElement(using: &random), let thing = drawing.things[id] else {
                return nil
            }
            try await test.assign(OriginalTransactionID(id), to: one)
            // What is theirs already needs no decision.
            let top = drawing.top(of: one)
            if drawing.owner(of: thing) != top {
                drawing.things[id]?.home = top
                drawing.things[id]?.isAssigned = true
            }
            return "\(id) assigned to \(one)"
        case 21, 22:
            try await give(to: one, of: &drawing, in: test)
            return "\(one) is given"
        default:
            guard turn > 8, let name = left.first(where: { !drawing.isEntangled($0) }) else { return nil }
            try await erase(name, of: &drawing, in: test)
            return "\(name) erased"
        }
    }

    /// What is due to a customer is carried out.
    private func give(to name: String, of drawing: inout Names, in test: TestLedger) async throws {
        let due = try await test.ledger.deliveries.read(
            of: test.app.bundleID, state: .due, customer: name, after: 0, limit: 100
        ).deliveries
        _ = try await test.ledger.deliveries.acknowledge(due.map(\.id), of: test.app.bundleID)
        let top = drawing.top(of: name)
        for (id, thing) in drawing.things where thing.givenTo == nil && drawing.owner(of: thing) == top {
            drawing.things[id]?.givenTo = top
        }
    }

    private func erase(_ name: String, of drawing: inout Names, in test: TestLedger) async throws {
        let top = drawing.top(of: name)
        _ = try await test.ledger.customers.erase(
            name, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "asked for it"))
        for name in Self.names where drawing.top(of: name) == top { drawing.erased.insert(name) }
        for (id, thing) in drawing.things where drawing.owner(of: thing) == top { drawing.things[id]?.home = nil }
    }

    private static func days(_ minute: Int64) -> Double { -2 + Double(minute) / 1_440 }

    /// A name places an order for coins.
    @discardableResult
    private func order(
        by name: String, at minute: Int64, of drawing: inout Names, in test: TestLedger
    ) async throws -> PlacedOrder {
        let order = try await test.place(by: name, days: Self.days(minute))
        drawing.orders.append(Names.Ordered(id: order.id, home: drawing.top(of: name), minute: minute))
        return order
    }

    /// A name buys coins: with the token or the proof of an order that was placed a minute before, or for none.
    private func buy(
        _ id: String, _ tie: String, by name: String, at turn: Int, of drawing: inout Names, in test: TestLedger
    ) async throws {
        let minute = Int64(turn) * 30
        let order = tie == "" ? nil : try await order(by: name, at: minute - 1, of: &drawing, in: test)
        var answer = test.bought([(id, "coins")], days: Self.days(minute), asOf: -1 + Double(turn) / 100)
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
            home: top, order: order?.id, token: tie == "token" ? order?.appAccountToken : nil, minute: minute,
            claimedBy: tie == "proof" ? top : nil)
    }

    /// A name claims what an erased one had bought and was not given, with an order that was placed `late` minutes after it.
    private func claim(
        by name: String, late: Int64, of drawing: inout Names, in test: TestLedger
    ) async throws -> String? {
        let free = drawing.things.filter { $0.value.home == nil && $0.value.givenTo == nil && $0.value.token == nil }
        guard let (id, thing) = free.min(by: { $0.key < $1.key }) else { return nil }
        let (top, minute) = (drawing.top(of: name), thing.minute + late)
        var trial = drawing
        trial.orders.append(Names.Ordered(id: "new", home: top, minute: minute))
        trial.things[id]?.order = "new"
        // Else the receipt would wait, and claim it as soon as the order is free.
        guard trial.payers(of: top, claiming: id)["new"] == id else { return nil }
        let order = try await order(by: name, at: minute, of: &drawing, in: test)
        let answer = test.bought([(id, "coins")], days: Self.days(thing.minute), asOf: -0.5)
        try await test.check(try await test.send("\(name)'s receipt of \(id)", for: order), answer)
        drawing.things[id] = Names.Thing(home: top, order: order.id, minute: thing.minute, claimedBy: top)
        return "\(name) claims \(id) \(late)"
    }

    private func expect(_ drawing: Names, _ comment: Comment, in test: TestLedger) async throws {
        let owned = drawing.things.map { "\($0.key) \(drawing.owner(of: $0.value))" }
        let below = drawing.above.keys.filter { !drawing.erased.contains($0) }
        // What is due is due to the owner, and what was given is theirs who were given it.
        let deliveries = drawing.things.compactMap { id, thing -> String? in
            if let given = thing.givenTo {
                return drawing.erased.contains(given) ? nil : "\(id) acknowledged \(drawing.top(of: given))"
            }
            return thing.home == nil ? nil : "\(id) due \(drawing.owner(of: thing))"
        }
        let payers = drawing.payers
        let orders = drawing.orders.map { order in
            if let given = order.given { return "\(order.id) delivered \(given)" }
            if drawing.erased.contains(order.home) { return "\(order.id) cancelled -" }
            return payers[order.id].map { "\(order.id) paid \($0)" } ?? "\(order.id) created -"
        }
        let seen = try await test.rows(
            """
            SELECT 'owner ' || transaction_id || ' ' || COALESCE(customer, '-') FROM perennial.purchase_now
            UNION ALL
            SELECT 'name ' || c.name || ' ' || h.name FROM ledger.customer c
            JOIN ledger.customer h ON h.customer_id = c.merged_into WHERE c.erased_at IS NULL
            UNION ALL
            SELECT 'delivery ' || transaction_id || ' ' || state || ' ' || customer FROM perennial.delivery_log
            WHERE state <> 'skipped' AND customer NOT LIKE 'erased-%'
            UNION ALL
            SELECT 'order ' || o.order_id || ' ' || o.state || ' ' || COALESCE(p.original_transaction_id, '-')
            FROM ledger.purchase_order o LEFT JOIN ledger.purchase p USING (purchase_id)
            """)
        let expected =
            owned.map { "owner \($0)" } + below.map { "name \($0) \(drawing.top(of: $0))" }
            + deliveries.map { "delivery \($0)" } + orders.map { "order \($0)" }
        #expect(seen.sorted() == expected.sorted(), comment)
    }
}
