import Subscriptions
import Testing

@testable import Tracking

@Suite("An export holds all that is kept of a customer")
struct CustomerExportTests {
    @Test("An export has entitlements, ownerships with cause and next owner, grants and receipts")
    func all() async throws {
        try await withLedger { test in
            try await test.sell()
            let receipt = try await test.upload("a", by: "ann")
            let answer = Answer(from: test.at(-9), asOf: test.at(-3))
            try await test.check(receipt, answer)
            try await test.check(
                try await test.upload("p", by: "ann"), purchase("p", at: test.at(-2), asOf: test.at(-1)))
            try await test.upload("a", by: "bob")
            try await test.check(receipt, answer.but { $0.asOf = test.at(-1) })
            try await ManualGrantTests.give(3, of: "pro", in: test)
            let ann = try await test.ledger.customers.export("ann", of: test.app.bundleID)
            #expect(ann.entitlements.filter(\.granted).map(\.name).sorted() == ["coins", "pro"])
            #expect(ann.ownerships.map(\.originalTransactionID) == ["p", "1000"])
            #expect(ann.ownerships.map(\.isSubscription) == [false, true])
            #expect(ann.ownerships.map(\.wentTo) == [nil, "bob"])
            #expect(ann.ownerships.map(\.cause) == [.upload, .upload])
            #expect(ann.grants.map(\.entitlement) == ["pro"] && ann.receipts.count == 2)
            let bob = try await test.ledger.customers.export("bob", of: test.app.bundleID)
            #expect(bob.ownerships.map(\.state) == ["active"] && bob.ownerships[0].until == nil)
            let unknown = await #expect(throws: LedgerError.self) {
                try await test.ledger.customers.export("unknown-customer", of: test.app.bundleID)
            }
            #expect(unknown?.kind == .notFound)
        }
    }

    @Test("An export has orders with price and log, deliveries and balances, by every name of the customer")
    func purchases() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            var placed: [PlacedOrder] = []
            for (name, product) in [("anon", "coins"), ("ann", "season"), ("bob", "coins")] as [(String, ProductID)] {
                let request = OrderRequest(
                    customer: name, productID: product, quantity: 3, priceMilliunits: 990, currency: "EUR")
                placed.append(
                    try await test.ledger.orders.place(request, of: test.app.bundleID, requestKey: "of \(name)"))
            }
            try await test.run("UPDATE ledger.purchase_order SET created_at = created_at - interval '3 days'")
            try await test.buys("p", quantity: 3, by: "anon")
            try await test.acknowledgeAll()
            try await test.buys("p", quantity: 3, by: "anon", asOf: -0.8, refunded: -0.9)
            _ = try await test.ledger.customers.merge(
                "anon", into: "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "logged in"))
            for name in ["anon", "ann"] {
                let bought = try await test.ledger.customers.export(name, of: test.app.bundleID).purchases
                #expect(bought.orders.map(\.order.id) == [placed[1].id, placed[0].id])
                #expect(bought.orders.map(\.priceMilliunits) == [990, 990] && bought.orders[0].currency == "EUR")
                #expect(bought.orders.map(\.order.customer) == ["ann", "ann"])
                #expect(bought.orders[1].changes.map(\.state) == [.delivered, .paid, .created])
                #expect(bought.orders[1].changes.map(\.cause) == ["acknowledged", "product", "placed"])
                #expect(
                    bought.deliveries.map(\.turn) == [2, 1] && bought.deliveries.map(\.state) == [.due, .acknowledged])
                #expect(
                    bought.balances == [PurchaseHistory.Balance(credit: "gold", environment: .production, units: 300)])
                #expect(!bought.hasMoreOrders && !bought.hasMoreDeliveries)
            }
            let cut = try await test.ledger.customers.purchaseHistory(of: "ann", in: test.app.bundleID, limit: 1)
            #expect(cut.orders.map(\.order.id) == [placed[1].id] && cut.hasMoreOrders)
            #expect(cut.deliveries.map(\.turn) == [2] && cut.hasMoreDeliveries)
            let nothing = try await test.ledger.customers.purchaseHistory(of: "eve", in: test.app.bundleID, limit: 1)
            #expect(nothing.orders.isEmpty && nothing.deliveries.isEmpty && nothing.balances.isEmpty)
        }
    }
}
