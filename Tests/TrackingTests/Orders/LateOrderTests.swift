import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A purchase that is stored before its order pays it")
struct LateOrderTests {
    private static func minutes(_ count: Double) -> Double { count / 1_440 }

    private func place(
        _ product: ProductID = "coins", key: String = "k", in test: TestLedger
    ) async throws -> PlacedOrder {
        try await (try test.sealed).orders.place(orderRequest(product), of: test.app.bundleID, requestKey: key)
    }

    @Test("An order is paid as it is placed, by what was bought at most ten minutes before; a repetition says so, too")
    func placed() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let now = Self.minutes(-1)
            try await test.check(
                try await test.upload("coins"),
                test.bought(at: [("old", Self.minutes(-12)), ("p", Self.minutes(-5))], asOf: now))
            let order = try await place(in: test)
            #expect(order.state == .paid)
            #expect(try await test.log(of: order) == "created placed, paid product")
            let again = try await place(in: test)
            #expect(again.id == order.id && again.state == .paid && !again.isNew)
            #expect(try await place(key: "another", in: test).state == .created)
            try await test.acknowledgeAll()
            #expect(try await test.log(of: order) == "created placed, paid product, delivered acknowledged")
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "What was given already, what another customer bought, and what a customer only points at pays no later order")
    func unpaid() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let now = Self.minutes(-1)
            try await test.buys("given", days: Self.minutes(-5), asOf: now)
            try await test.acknowledgeAll()
            try await test.buys("of bob", by: "bob", days: Self.minutes(-5), asOf: now)
            try await test.show(
                .transactionID, "pointed", by: "ann",
                test.bought([("pointed", "coins")], days: Self.minutes(-5), asOf: now))
            #expect(try await place(in: test).state == .created)
        }
    }

    @Test("The period of a subscription pays its later order, and a renewal does not")
    func periods() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let first = Answer(from: test.at(Self.minutes(-5)), asOf: test.at(Self.minutes(-1)))
            try await test.check(try await test.upload("monthly"), first)
            #expect(try await place(first.product, in: test).state == .paid)
        }
    }

    @Test("An order and its purchase that are stored at the same time find each other", arguments: 0..<2)
    func atOnce(turn: Int) async throws {
        try await withLedger(connections: 3) { test in
            try await test.sellDeliverables()
            try await test.buys("first", days: -50)
            let receipt = try await test.upload("receipt")
            let answer = test.bought([("p", "coins")], days: Self.minutes(-5), asOf: Self.minutes(-1))
            let (placing, settling) = try await test.database.transaction { transaction in
                try transaction.script("SELECT FROM ledger.customer FOR NO KEY UPDATE")
                var tasks: (Task<PlacedOrder, any Error>?, Task<Settled, any Error>?) = (nil, nil)
                for one in 0..<2 {
                    if one == turn {
                        tasks.0 = Task { try await place(in: test) }
                    } else {
                        tasks.1 = Task { try await test.check(receipt, answer) }
                    }
                    try transaction.waitUntilAnotherIsBlocked(sessions: Int64(one + 1))
                }
                return tasks
            }
            let order = try #require(try await placing?.value)
            _ = try await settling?.value
            #expect(try await test.log(of: order) == "created placed, paid product")
        }
    }

    @Test("A pointer to a non-consumable makes no order owned, and a pointer lets no app finish a consumable")
    func pointers() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let early = try await place("themes", in: test)
            for (id, product) in [("t", "themes"), ("p", "coins")] as [(String, ProductID)] {
                let shown = try await test.show(.transactionID, id, by: "ann", test.bought([(id, product)]))
                let contents = try await test.ledger.intake.purchases(in: shown.receiptID, for: "ann")
                #expect(contents.finishable == (product == "themes" ? ["t"] : []))
                let order = try #require(try await test.ledger.orders.read(early.id, of: test.app.bundleID))
                if case .owned = contents.fit(for: order) { Issue.record("\(id) is taken to be owned") }
            }
            let late = try await place("themes", key: "late", in: test)
            #expect(try await test.log(of: early) == "created placed")
            #expect(try await test.log(of: late) == "created placed")
            try await test.check(try await test.upload("receipt"), test.bought([("t", "themes")], asOf: -0.9))
            #expect(try await test.log(of: early).hasPrefix("created placed, delivered already_owned"))
        }
    }
}
