import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// What ties a purchase to an order.
private enum Tie: String, CaseIterable { case token, proof, order, transaction }

@Suite("What came with a name goes with it")
struct SplitTests {
    /// Each of three names buys something and orders it; e becomes f, and f becomes g.
    private func chain(in test: TestLedger) async throws -> [String: PlacedOrder] {
        try await test.sellDeliverables()
        var orders: [String: PlacedOrder] = [:]
        for (place, name) in ["e", "f", "g"].enumerated() {
            let days = -3 + Double(place) / 10
            orders[name] = try await test.place(by: name, days: days)
            try await test.buys("p\(name)", by: name, days: days + 0.01)
        }
        try await test.merge("e", into: "f")
        try await test.merge("f", into: "g")
        #expect(try await test.owners() == "pe g, pf g, pg g")
        return orders
    }

    private func expectPaid(_ orders: [String: PlacedOrder], _ owners: String, in test: TestLedger) async throws {
        #expect(try await test.owners() == owners)
        for (name, order) in orders {
            let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
            #expect(read.state == .paid && read.transactionID == "p\(name)", "order of \(name)")
        }
        #expect(try await test.violations() == [])
    }

    @Test("A split in the middle of a chain takes the names along that came before, and what each had stays its own")
    func middle() async throws {
        try await withLedger { test in
            let orders = try await chain(in: test)
            let between = try await test.betweenChanges()
            #expect(try await test.split("f") == CustomerSplit(from: "g", things: 2))
            try await expectPaid(orders, "pe f, pf f, pg g", in: test)
            try await test.expectRows(
                "SELECT c.name, h.name FROM ledger.customer c JOIN ledger.customer h ON h.customer_id = c.merged_into",
                [["e", "f"]])
            try await test.expectRows(
                """
                SELECT c.name, convert_from(r.data, 'UTF8') FROM ledger.upload u
                JOIN ledger.customer c USING (customer_id) JOIN ledger.receipt r USING (receipt_id) ORDER BY 2
                """, [["f", "receipt of pe"], ["f", "receipt of pf"], ["g", "receipt of pg"]])
            let meant = """
                SELECT h.name FROM ledger.customer c
                JOIN ledger.customer h ON h.customer_id = ledger.customer_at(c.customer_id, '\(between.iso8601)')
                WHERE c.name = 'e'
                """
            #expect(try await test.text(meant) == "g", "as ever of the time before")
            #expect(try await test.split("e") == CustomerSplit(from: "f", things: 1))
            try await expectPaid(orders, "pe e, pf f, pg g", in: test)
            #expect(
                try await test.text("SELECT count(*) FROM ledger.upload WHERE uploaded_as IS NOT NULL") == "0")
        }
    }

    @Test("The first name of a chain leaves alone, and the next one then has its own alone")
    func first() async throws {
        try await withLedger { test in
            let orders = try await chain(in: test)
            #expect(try await test.split("e") == CustomerSplit(from: "g", things: 1))
            try await expectPaid(orders, "pe e, pf g, pg g", in: test)
            #expect(try await test.split("f") == CustomerSplit(from: "g", things: 1))
            try await expectPaid(orders, "pe e, pf f, pg g", in: test)
            try await test.merge("e", into: "g")
            #expect(try await test.split("e").things == 1)
            try await expectPaid(orders, "pe e, pf f, pg g", in: test)
        }
    }

    @Test("An erasure of the last name of a chain leaves the names alone that a split took from it")
    func erased() async throws {
        try await withLedger { test in
            let orders = try await chain(in: test)
            try await test.split("f")
            let decision = try ManualDecision(by: "kim", because: "asked for it")
            _ = try await test.ledger.customers.erase("g", of: test.app.bundleID, deciding: decision)
            try await expectPaid(orders.filter { $0.key != "g" }, "pe f, pf f, pg -", in: test)
            _ = try await test.ledger.customers.erase("e", of: test.app.bundleID, deciding: decision)
            #expect(try await test.owners() == "pe -, pf -, pg -")
            #expect(try await test.text("SELECT count(*) FROM ledger.customer WHERE erased_at IS NULL") == "0")
            #expect(try await test.violations() == [])
        }
    }

    @Test("What a name was given while it was a customer goes with it, and what the other one was given stays")
    func given() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", by: "e")
            try await test.acknowledgeAll()
            try await test.merge("e", into: "f")
            try await test.buys("q", by: "e", days: -1.9)
            try await test.acknowledgeAll()
            try await test.merge("f", into: "g")
            // What moves to another customer by hand was given to e nevertheless.
            try await test.assign("p", to: "zoe")
            #expect(try await test.deliveries() == ["p", "q"].map { _ in "1 purchase acknowledged g 100" })
            try await test.split("e")
            #expect(try await test.owners() == "p zoe, q g")
            #expect(
                try await test.deliveries() == ["1 purchase acknowledged e 100", "1 purchase acknowledged g 100"])
            try await test.split("f")
            #expect(
                try await test.deliveries() == ["1 purchase acknowledged e 100", "1 purchase acknowledged f 100"])
            #expect(try await test.violations() == [])
        }
    }

    @Test("What was given to the other customer before it was assigned to a name stays given to that one")
    func assigned() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", by: "g")
            try await test.acknowledgeAll()
            try await test.assign("p", to: "e")
            try await test.merge("e", into: "g")
            try await test.split("e")
            #expect(try await test.owners() == "p e")
            #expect(try await test.deliveries() == ["1 purchase acknowledged g 100"])
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "What arrived by a token, with a proof or for an order of the name goes with its order; what was given meanwhile stays given to the other customer",
        arguments: Tie.allCases, [false, true])
    fileprivate func tied(by tie: Tie, isGiven: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await test.upload("another", by: "bob")
            try await test.merge("ann", into: "bob")
            try await send("p", tie, for: order, in: test)
            #expect(try await test.log(of: order) == "created placed, paid \(tie)")
            if isGiven { try await test.acknowledgeAll() }
            try await test.split("ann")
            let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
            #expect(read.customer == "ann" && read.state == (isGiven ? .delivered : .paid))
            #expect(read.transactionID == "p" && read.deliveryIDs.count == 1)
            #expect(
                try await test.deliveries() == ["1 purchase \(isGiven ? "acknowledged bob" : "due ann") 100"])
            let stays = isGiven && (tie == .order || tie == .transaction)
            #expect(try await test.owners() == (stays ? "p bob" : "p ann"))
            #expect(try await test.violations() == [])
            if !isGiven {
                try await test.acknowledgeAll()
                #expect(try await test.log(of: order).hasSuffix(", delivered acknowledged"))
                #expect(try await test.text("SELECT customer || units FROM perennial.credit_balance") == "ann100")
            }
        }
    }

    @Test("An order that goes back leaves the other customer what paid it, also what the policy transferred meanwhile")
    func orderAlone() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let mine = try await test.place()
            let (theirs, themes) = (try await test.place(by: "bob", days: -4), try await test.place("themes"))
            try await test.buys("p", by: "bob")
            try await test.merge("ann", into: "bob")
            #expect(try await test.log(of: mine) == "created placed, paid product")
            #expect(try await test.log(of: theirs).hasSuffix(", created moved"))
            try await test.buys("t", "themes", by: "bob")
            try await test.check(try await test.upload("of eve", by: "eve"), test.bought([("t", "themes")], asOf: -0.9))
            #expect(try await test.owners() == "p bob, t eve")
            #expect(try await test.log(of: themes) == "created placed, paid product")
            try await test.split("ann")
            for order in [mine, themes] {
                #expect(try await test.log(of: order) == "created placed, paid product, created moved")
            }
            #expect(try await test.log(of: theirs).hasSuffix(", created moved, paid product"))
            #expect(try await test.deliveries() == ["1 purchase due bob 100", "1 purchase due bob"])
            #expect(try await test.violations() == [])
            try await test.run(
                """
                UPDATE ledger.purchase_order o SET customer_id = c.customer_id FROM ledger.customer c
                WHERE o.order_id = '\(theirs.id)' AND c.name = 'ann'
                """)
            #expect(
                try await test.violations([.orders]).map(\.detail)
                    == ["order \(theirs.id) is paid by what is another customer's"])
        }
    }

    @Test("What a token or a proof ties to an order of the other customer stays, and what a name alone gave goes back")
    func tiedToTheOther() async throws {
        try await withLedger { test in
            for (place, tie) in Tie.allCases.enumerated() {
                if place == 0 { try await test.sellDeliverables() }
                let (mine, theirs) = ("ann \(tie)", "bob \(tie)")
                try await test.buys("p\(tie)", by: mine, days: -2)
                let order = try await test.place(by: theirs)
                try await test.merge(mine, into: theirs)
                try await send("p\(tie)", tie, for: order, by: theirs, in: test)
                #expect(try await test.log(of: order) == "created placed, paid product, paid \(tie)")
                try await test.split(mine)
                let stays = tie == .token || tie == .proof
                #expect(try await test.owners().contains("p\(tie) \(stays ? theirs : mine)"))
                #expect(try await test.log(of: order).hasSuffix(stays ? "paid \(tie)" : "created moved"))
            }
            #expect(try await test.violations() == [])
        }
    }

    @Test("A token that is the name goes with the name, and one that an order of another product has does, too")
    func otherTokens() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let ann = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
            let themes = try await test.place("themes", by: ann)
            try await test.upload("another", by: "bob")
            try await test.merge(ann, into: "bob")
            for (id, token, days) in [("p", ann, -2), ("q", themes.appAccountToken, -1.9)] {
                try await test.check(
                    try await test.upload(id, by: "bob"), test.bought([(id, "coins")], days: days).carrying(token))
            }
            try await test.buys("r", by: ann, days: -1.8)
            try await test.split(ann)
            #expect(try await test.owners() == "p \(ann), q \(ann), r bob")
            #expect(
                try await test.deliveries() == [ann, ann, "bob"].map { "1 purchase due \($0) 100" })
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "What a non-consumable gave meanwhile is taken back from whom it was given to, and not as a part of the order")
    func kept() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place("themes")
            try await test.buys("t", "themes")
            try await test.merge("ann", into: "bob")
            try await test.acknowledgeAll()
            try await test.split("ann")
            #expect(try await test.owners() == "t ann")
            while try await test.text("SELECT count(*) FROM ledger.due_delivery") != "0" {
                try await test.acknowledgeAll()
            }
            #expect(
                try await test.deliveries() == [
                    "1 purchase acknowledged bob", "2 transfer acknowledged bob", "3 transfer acknowledged ann",
                ])
            #expect(try await test.log(of: order) == "created placed, paid product, delivered acknowledged")
            #expect(try await test.violations() == [])
            try await test.merge("ann", into: "bob")
            #expect(try await test.log(of: order) == "created placed, paid product, delivered acknowledged")
            #expect(try await test.violations() == [])
        }
    }

    @Test("Verification names what is due to another customer than the one whose order the token names")
    func verified() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await send("p", .token, for: order, in: test)
            try await test.upload("another", by: "bob")
            let bob = "(SELECT customer_id FROM ledger.customer WHERE name = 'bob')"
            try await test.run("UPDATE ledger.delivery SET customer_id = \(bob)")
            #expect(
                try await test.violations().map(\.detail).contains {
                    $0.hasSuffix("is due to another customer than the one whose order its account token names")
                })
        }
    }

    /// Sends a receipt with coins that are tied to an order.
    private func send(
        _ id: String, _ tie: Tie, for order: PlacedOrder, by customer: String = "bob", in test: TestLedger
    ) async throws {
        var answer = test.bought([(id, "coins")], asOf: -0.9)
        if tie == .token { answer = answer.carrying(order.appAccountToken) }
        let receipt =
            switch tie {
            case .token: try await test.upload("of \(id)", by: customer)
            case .proof: try await test.send("of \(id)", for: order)
            case .order: try await test.send("of \(id)", for: order, by: customer)
            case .transaction:
                try await test.send("of \(id)", for: order, by: customer, naming: TransactionID(id))
            }
        try await test.check(receipt, answer)
    }
}

extension TestLedger {
    /// A person merges one name into another.
    func merge(_ from: String, into: String) async throws {
        _ = try await ledger.customers.merge(
            from, into: into, of: app.bundleID, deciding: ManualDecision(by: "kim", because: "logged in"))
    }

    /// A person undoes that.
    @discardableResult
    func split(_ name: String) async throws -> CustomerSplit {
        try await ledger.customers.split(
            name, of: app.bundleID, deciding: ManualDecision(by: "kim", because: "another person"))
    }

    /// A person assigns a purchase.
    func assign(_ id: OriginalTransactionID, to customer: String) async throws {
        _ = try await ledger.customers.assign(
            id, to: customer, of: app.bundleID, deciding: ManualDecision(by: "kim", because: "called"))
    }
}
