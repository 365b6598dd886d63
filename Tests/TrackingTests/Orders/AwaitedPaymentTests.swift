import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("An order waits for the transaction that the caller named")
struct AwaitedPaymentTests {
    private static let sold: [(id: String, product: ProductID)] = [("p", "coins")]
    private static let both: [(id: String, days: Double)] = [("p", -2), ("t", -1.9)]

    @Test("Another purchase does not pay it meanwhile; the named one does when Apple lists it")
    func waits() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await test.check(
                try await test.send("a", for: order, by: "ann", naming: "t"), test.bought(Self.sold))
            #expect(try await test.log(of: order) == "created placed")
            // Nor does what another receipt brings.
            try await test.buys("q", days: -2.2)
            #expect(try await test.log(of: order) == "created placed")
            try await test.check(
                try await test.send("a", for: order, by: "ann", naming: "t"), test.bought(at: Self.both, asOf: -0.9))
            #expect(try await test.log(of: order) == "created placed, paid transaction")
            #expect(try await test.ledger.orders.read(order.id, of: test.app.bundleID)?.transactionID == "t")
            #expect(try await test.violations() == [])
        }
    }

    @Test("What paid it before pays another order; the waiting is about one order")
    func moves() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (older, order) = (try await test.place(), try await test.place(days: -2.5))
            try await test.buys("p")
            #expect(try await test.log(of: order) == "created placed, paid product")
            try await test.check(
                try await test.send("a", for: order, by: "ann", naming: "t"), test.bought(Self.sold, asOf: -0.9))
            #expect(try await test.log(of: order) == "created placed, paid product, created moved")
            #expect(try await test.log(of: older) == "created placed, paid product")
            #expect(try await test.violations() == [])
        }
    }

    enum End: CaseIterable { case namesNothing, namesAnother, listedElsewhere, expired }

    @Test(
        "The waiting ends with the next upload for the order, once any answer lists the transaction, and when the order ends",
        arguments: End.allCases)
    func ends(end: End) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            let answer = test.bought(Self.sold, asOf: -0.9)
            try await test.check(try await test.send("a", for: order, by: "ann", naming: "t"), answer)
            #expect(try await test.log(of: order) == "created placed")
            var (naming, paid): (TransactionID?, String) = ("t", "created placed, paid order")
            switch end {
            case .namesNothing: naming = nil
            case .namesAnother: (naming, paid) = ("p", "created placed, paid transaction")
            case .listedElsewhere: try await test.buys("t", by: "bob", asOf: -0.95)
            case .expired:
                try await test.run("UPDATE ledger.purchase_order SET state = 'expired', cause = 'not_paid'")
                paid = "created placed, expired not_paid, paid order"
            }
            try await test.check(try await test.send("a", for: order, by: "ann", naming: naming), answer)
            #expect(try await test.log(of: order) == paid)
            #expect(try await test.violations() == [])
        }
    }

    @Test("A proof claims nothing for an order that waits, and what is named pays in whatever answer it comes")
    func proofs() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            let device = try await test.send("device", for: order)
            let named = try await test.send("a", for: order, by: "ann", naming: "t")
            try await test.check(device, test.bought(Self.sold))
            #expect(try await test.owners() == "p -")
            #expect(try await test.log(of: order) == "created placed")
            try await test.check(named, test.bought(at: Self.both, asOf: -0.9))
            #expect(try await test.log(of: order) == "created placed, paid transaction")
            #expect(try await test.violations() == [])
        }
    }
}
