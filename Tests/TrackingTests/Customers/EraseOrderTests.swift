import Crypto
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("An erasure leaves nothing personal in orders and deliveries")
struct EraseOrderTests {
    /// The orders of a customer of whom everything is kept that can be.
    private struct Orders {
        let open, failed, paid, due: PlacedOrder

        var all: [PlacedOrder] { [open, failed, paid, due] }
    }

    private static let names = ["ann-of-the-orders", "anon-of-the-orders"]

    private func erase(_ customer: String, in test: TestLedger) async throws -> String {
        try await test.ledger.acting(as: .user("kim")).customers.erase(
            customer, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "asked for it")
        ).pseudonym
    }

    /// Places an order three days ago.
    private func place(_ product: ProductID, by customer: String, in test: TestLedger) async throws -> PlacedOrder {
        let request = OrderRequest(
            customer: customer, productID: product, quantity: 1, priceMilliunits: 7_654_321, currency: "XTS",
            device: "device of \(customer)")
        let placed = try await test.ledger.orders.place(
            request, of: test.app.bundleID, requestKey: "request of \(customer) for \(product)")
        try await test.run(
            """
            UPDATE ledger.purchase_order SET created_at = '\(test.at(-3).iso8601)' WHERE order_id = '\(placed.id)'
            """)
        return placed
    }

    private func proof(_ message: String, by order: PlacedOrder) throws -> String {
        HMAC<SHA256>.authenticationCode(
            for: Data(message.utf8), using: SymmetricKey(data: try #require(Data(base64Encoded: order.key)))
        ).map { String(format: "%02x", $0) }.joined()
    }

    private func report(_ order: PlacedOrder, code: String, in test: TestLedger) async throws -> OrderState? {
        try await test.ledger.orders.report(
            .failed, code: code, of: order.id, proof: proof("\(order.id).failed.\(code)", by: order))
    }

    private func monthly(_ test: TestLedger, token: String, asOf: Double) -> Answer {
        Answer(from: test.at(-2), asOf: test.at(asOf)).but { $0.token = token }
    }

    private func arrange(_ test: TestLedger) async throws -> Orders {
        try await test.sellDeliverables()
        let (ann, anon) = (Self.names[0], Self.names[1])
        let orders = Orders(
            open: try await place("season", by: anon, in: test), failed: try await place("coins", by: anon, in: test),
            paid: try await place("monthly", by: ann, in: test), due: try await place("themes", by: ann, in: test))
        #expect(try await report(orders.failed, code: "code-of-ann", in: test) == .failed)
        try await test.check(
            try await test.upload("subscription of ann", by: ann),
            monthly(test, token: orders.paid.appAccountToken, asOf: -1))
        try await test.buys("given", by: ann)
        try await test.acknowledgeAll()
        try await test.buys("by hand", quantity: 2, by: ann)
        let skipped = try #require(
            try await test.ledger.deliveries.read(
                of: test.app.bundleID, state: .due, after: 0, limit: 1
            )
            .deliveries.first)
        _ = try await test.ledger.acting(as: .user("kim")).deliveries.skip(
            skipped.id, of: test.app.bundleID, because: "Given to Ann-of-the-orders by hand")
        try await test.buys("theme", "themes", by: ann)
        _ = try await test.ledger.customers.merge(
            anon, into: ann, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "logged in"))
        return orders
    }

    private func logs(_ test: TestLedger) async throws -> [String] {
        try await test.rows(
            """
            SELECT o.product_id || ': ' || string_agg(l.state || ' ' || l.cause, ', ' ORDER BY l.at)
            FROM ledger.purchase_order o JOIN perennial.order_log l ON l.order_id = o.order_id::text
            GROUP BY o.order_id, o.product_id ORDER BY o.product_id
            """)
    }

    @Test("The dump holds no name, token, key, device, price, code or request of an erased customer's orders")
    func dump() async throws {
        try await withLedger { test in
            let orders = try await arrange(test)
            let secrets = try await test.rows(
                """
                SELECT encode(device, 'hex') FROM ledger.purchase_order UNION
                SELECT encode(sealed_key, 'hex') FROM ledger.purchase_order
                """)
            #expect(secrets.count == 6, "two devices and four keys")
            let traces =
                Self.names + ["7654321", "code-of-ann", "request of", "by hand"] + secrets
                + orders.all.map(\.appAccountToken)
            let before = try await test.dumped().lowercased()
            for trace in traces { #expect(before.contains(trace), "\(trace) was never stored, so it proves nothing") }
            let balance = "SELECT environment, credit, units FROM perennial.credit_balance"
            let units = try await test.database.cells(balance)
            let pseudonym = try await erase(Self.names[1], in: test)
            let after = try await test.dumped().lowercased()
            for trace in traces.filter({ $0 != "by hand" }) { #expect(!after.contains(trace), "\(trace) is left") }
            #expect(!after.contains("given to"))
            #expect(try await test.database.cells(balance) == units && units.count == 1)
            #expect(
                try await logs(test) == [
                    "coins: created placed, failed device",
                    "monthly: created placed, paid token, delivered acknowledged",
                    "season: created placed, cancelled erased",
                    "themes: created placed, paid product, cancelled erased",
                ])
            #expect(
                try await test.deliveries() == [
                    "1 purchase acknowledged \(pseudonym)", "1 purchase acknowledged \(pseudonym) 100",
                    "1 purchase erased \(pseudonym) 200", "1 purchase erased \(pseudonym)",
                ])
            try await test.expectRows(
                "SELECT action, detail ->> 'reason' FROM perennial.audit_log WHERE action LIKE 'delivery.%'",
                [["delivery.skipped", "erased"]])
            try await test.expectSound()
        }
    }

    @Test("What comes after the erasure, by proof, token or receipt, finds no order and gives nothing")
    func later() async throws {
        try await withLedger { test in
            let orders = try await arrange(test)
            _ = try await erase(Self.names[0], in: test)
            let (logs, deliveries) = (try await logs(test), try await test.deliveries())
            for order in orders.all {
                #expect(try await report(order, code: "again", in: test) == nil)
                let made = try proof("\(order.id).\(SHA256.hash(data: Data([1])).hex)", by: order)
                #expect(try await !test.ledger.orders.accepts(OrderProof(of: order.id, receipt: [1], code: made)))
            }
            try await test.check(
                try await test.upload("subscription of ann", by: "bob"),
                monthly(test, token: orders.paid.appAccountToken, asOf: -0.5))
            try await test.check(
                try await test.upload("another", by: "bob"),
                Answer(from: test.at(-1), asOf: test.at(-0.4)).but {
                    ($0.subscription, $0.line, $0.token) = ("2000", "v", orders.open.appAccountToken)
                })
            try await test.buys("theme", "themes", by: "bob", asOf: -0.5)
            #expect(try await test.owner() == "bob")
            #expect(try await self.logs(test) == logs)
            #expect(try await test.deliveries() == deliveries + ["1 purchase due bob"], "bob's other subscription")
            // The same key places an order of a new customer.
            let again = try await place("season", by: Self.names[1], in: test)
            #expect(again.isNew && again.id != orders.open.id && again.state == .created)
            #expect(
                try await test.ledger.orders.read(again.id, of: test.app.bundleID)?.customer == Self.names[1])
        }
    }

    @Test("A refund of what an erased customer got takes nothing back; figures of other customers stay")
    func refundLater() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", by: "ann")
            try await test.buys("q", by: "bob")
            let due = try await test.ledger.deliveries.read(
                of: test.app.bundleID, after: 0, limit: 9)
            _ = try await test.ledger.acting(as: .user("ann")).deliveries.acknowledge(
                due.deliveries.map(\.id), of: test.app.bundleID)
            let pseudonym = try await erase("ann", in: test)
            try await test.expectRows(
                "SELECT acknowledged_by FROM perennial.delivery_log ORDER BY delivery_id", [["erased"], ["ann"]])
            for id in ["p", "q"] { try await test.buys(id, by: "bob", asOf: -0.5, refunded: -0.6) }
            #expect(
                try await test.deliveries() == [
                    "1 purchase acknowledged \(pseudonym) 100", "1 purchase acknowledged bob 100",
                    "2 refund erased \(pseudonym) 100", "2 refund due bob 100",
                ])
            try await test.expectSound()
        }
    }

    @Test("The token of an order goes also from an older period of what another customer owns by now")
    func olderPeriod() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let mine = try await place("monthly", by: "ann", in: test).appAccountToken
            let later = try await place("monthly", by: "bob", in: test).appAccountToken
            let receipt = try await test.upload("shared", by: "ann")
            let first = Answer(from: test.at(-40), asOf: test.at(-35)).but { $0.token = mine }
            try await test.check(receipt, first)
            #expect(try await test.owner() == "ann")
            try await test.upload("shared", by: "bob")
            var both = first.but { ($0.periods, $0.asOf) = (2, test.at(-1)) }.evidence
            both.transactions[1].appAccountToken = later
            try await test.check(receipt, .verified(both))
            _ = try await test.ledger.customers.assign(
                "1000", to: "bob", of: test.app.bundleID,
                deciding: ManualDecision(by: "kim", because: "shared device"))
            #expect(try await test.owner() == "bob")
            #expect(try await test.dumped().contains(mine))
            _ = try await erase("ann", in: test)
            let dump = try await test.dumped()
            #expect(!dump.contains(mine) && dump.contains(later))
            #expect(try await test.owner() == "bob")
        }
    }

    @Test("What an erased customer was to give back goes to its next owner at once")
    func transferred() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("t", "themes", by: "ann")
            try await test.acknowledgeAll()
            try await test.buys("t", "themes", by: "bob", asOf: -0.9)
            #expect(try await test.deliveries().last == "2 transfer due ann")
            let pseudonym = try await erase("ann", in: test)
            let moved = [
                "1 purchase acknowledged \(pseudonym)", "2 transfer erased \(pseudonym)", "3 transfer due bob",
            ]
            #expect(try await test.deliveries() == moved)
            try await test.buys("t", "themes", by: "bob", asOf: -0.8)
            #expect(try await test.deliveries() == moved)
            try await test.expectSound()
        }
    }

    @Test(
        "What an erased customer paid for and was not given pays the order of who shows it later; what was given, none",
        arguments: [false, true])
    func provedLater(isGiven: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (mine, theirs) = (try await test.place(), try await test.place(by: "bob"))
            try await test.buys("p")
            #expect(try await test.log(of: mine) == "created placed, paid product")
            if isGiven { try await test.acknowledgeAll() }
            let pseudonym = try await erase("ann", in: test)
            #expect(
                try await test.log(of: mine)
                    == "created placed, paid product, \(isGiven ? "delivered acknowledged" : "cancelled erased")")
            let payer = try await test.ledger.orders.read(mine.id, of: test.app.bundleID)
            #expect(payer?.transactionID == (isGiven ? "p" : nil) && payer?.deliveryIDs.count == (isGiven ? 1 : 0))
            #expect(try await test.owners() == "p -")
            #expect(try await test.violations() == [])
            for (place, receipt) in ["of bob", "another"].enumerated() {
                try await test.check(
                    try await test.send(receipt, for: theirs),
                    test.bought([("p", "coins")], asOf: -0.9 + Double(place) / 10))
            }
            #expect(try await test.log(of: theirs) == "created placed" + (isGiven ? "" : ", paid proof"))
            #expect(try await test.owners() == "p \(isGiven ? "-" : "bob")")
            let lines =
                isGiven
                ? ["1 purchase acknowledged \(pseudonym) 100"]
                : [
                    "1 purchase erased \(pseudonym) 100", "2 transfer claimed_by_order \(pseudonym) 100",
                    "3 purchase due bob 100",
                ]
            #expect(try await test.deliveries() == lines)
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "What was skipped for another customer was given to none: it pays an order that is placed within ten minutes after it",
        arguments: ["coins", "themes"] as [ProductID], [false, true])
    func lookedBack(product: ProductID, isErased: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", product, by: "bob")
            if isErased {
                _ = try await erase("bob", in: test)
            } else {
                let due = try await test.ledger.deliveries.read(
                    of: test.app.bundleID, state: .due, after: 0, limit: 1)
                _ = try await test.ledger.acting(as: .user("kim")).deliveries.skip(
                    try #require(due.deliveries.first).id, of: test.app.bundleID, because: "a mistake")
            }
            // A non-consumable without an owner is the next uploader's, who is given nothing without an order.
            let isLaunched = isErased && product == "themes"
            if isLaunched {
                try await test.check(try await test.upload("of ann"), test.bought([("p", product)], asOf: -0.9))
            }
            let order = try await test.place(product, days: -2 + 5.0 / 1_440)
            try await test.check(try await test.send("ann's", for: order), test.bought([("p", product)], asOf: -0.8))
            let placed = isLaunched ? "delivered already_owned" : "created placed"
            #expect(try await test.log(of: order) == "\(placed), paid proof")
            #expect(try await test.owners() == "p ann")
            #expect(try await test.deliveries().last?.hasPrefix("3 purchase due ann") == true)
            #expect(try await test.violations() == [])
        }
    }

    @Test("What is due for the order of an erased customer, and belongs to another one by then, is due to this one")
    func dueToNextOwner() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place("themes")
            try await test.buys("t", "themes")
            try await test.buys("t", "themes", by: "bob", asOf: -0.9)
            #expect(try await test.owners() == "t bob")
            #expect(try await test.deliveries() == ["1 purchase due ann"])
            let pseudonym = try await erase("ann", in: test)
            #expect(try await test.log(of: order) == "created placed, paid product, cancelled erased")
            #expect(
                try await test.deliveries() == [
                    "1 purchase claimed_by_order \(pseudonym)", "2 transfer claimed_by_order \(pseudonym)",
                    "3 purchase due bob",
                ])
            try await test.expectSound()
        }
    }

    @Test("An order that is placed during the erasure belongs to a new customer")
    func placedMeanwhile() async throws {
        try await withLedger(connections: 4) { test in
            try await test.sellDeliverables()
            for round in 0..<12 {
                _ = try await place("coins", by: "ann", in: test)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        let request = OrderRequest(customer: "ann", productID: "season", device: "device of ann")
                        _ = try await test.ledger.orders.place(
                            request, of: test.app.bundleID, requestKey: "round \(round)")
                    }
                    group.addTask { _ = try await erase("ann", in: test) }
                    try await group.waitForAll()
                }
                #expect(
                    try await test.text(
                        """
                        SELECT count(*) FROM ledger.purchase_order JOIN ledger.customer USING (customer_id)
                        WHERE erased_at IS NOT NULL AND num_nonnulls(device, sealed_key) > 0
                        """) == "0", "round \(round)")
                // The next round begins with a customer of this name, whichever came first.
                try await test.upload("round \(round)", by: "ann")
                _ = try await erase("ann", in: test)
            }
        }
    }
}

extension SHA256.Digest {
    /// The digest in lower-case hex.
    fileprivate var hex: String { map { String(format: "%02x", $0) }.joined() }
}
