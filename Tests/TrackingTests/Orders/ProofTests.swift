import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A receipt that is sent for an order pays it")
struct ProofTests {
    @Test("A proof claims one transaction of the ordered product; other rows of the receipt have no owner")
    func one() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            let receipt = try await test.send("device", for: order)
            try await test.check(receipt, test.bought([("p", "coins"), ("q", "coins"), ("t", "themes")]))
            #expect(try await test.owners() == "p ann, q -, t -")
            #expect(try await test.log(of: order) == "created placed, paid proof")
            #expect(try await test.deliveries() == ["1 purchase due ann 100"])
            let kinds = try await test.text("SELECT string_agg(kind::text, ' ' ORDER BY kind) FROM ledger.event")
            #expect(kinds == "purchase.made purchase.made purchase.made ownership.assigned")
            // The same upload again claims nothing more.
            try await test.check(
                try await test.send("device", for: order), test.bought([("p", "coins"), ("q", "coins")], asOf: -0.9))
            #expect(try await test.owners() == "p ann, q -, t -")
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "What a receipt with a proof shows first is of who sent another receipt of the account, in either order",
        arguments: [true, false])
    func otherContents(uploadIsFirst: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place("themes")
            if uploadIsFirst { try await test.buys("p", by: "bob") }
            let sent = try await test.send("device", for: order)
            try await test.check(sent, test.bought([("p", "coins"), ("q", "coins")], days: -3, asOf: -0.9))
            if !uploadIsFirst {
                #expect(try await test.owners() == "p -, q -")
                try await test.buys("p", by: "bob", days: -3, asOf: -0.85)
            }
            let shown = test.bought([("p", "coins"), ("q", "coins"), ("r", "coins")], days: -3, asOf: -0.8)
            try await test.run("UPDATE ledger.poll_schedule SET due_at = now(), leased_by = NULL")
            try await test.check(sent, shown)
            #expect(try await test.owners() == "p bob, q bob, r bob")
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "Who owns by a proof alone owns nothing else of the account, under each policy",
        arguments: OwnershipPolicy.allCases)
    func restOfProved(policy: OwnershipPolicy) async throws {
        try await withLedger(policy: policy) { test in
            try await test.sellDeliverables()
            let order = try await test.place(by: "bob")
            let said = test.bought([("p", "coins"), ("t", "themes")])
            try await test.check(try await test.send("device", for: order), said)
            #expect(try await test.owners() == "p bob, t -")
            try await test.check(
                try await test.upload("device"), test.bought([("p", "coins"), ("t", "themes")], asOf: -0.9))
            #expect(try await test.owners() == "p bob, t ann")
            #expect(try await test.violations() == [])
        }
    }

    @Test("A proof takes what another customer merely uploaded and did not get; what was delivered stays")
    func merelyUploaded() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await test.buys("p", by: "bob")
            let sent = try await test.send("receipt of p", for: order)
            try await test.check(sent, test.bought([("p", "coins")], asOf: -0.9))
            #expect(try await test.owners() == "p ann")
            let given = try await test.deliveries()
            #expect(
                given == [
                    "1 purchase claimed_by_order bob 100", "2 transfer claimed_by_order bob 100",
                    "3 purchase due ann 100",
                ])
            #expect(try await test.log(of: order) == "created placed, paid proof")
            try await test.acknowledgeAll()
            #expect(try await test.log(of: order).hasSuffix(", delivered acknowledged"))
            let second = try await test.place()
            // At another instant, or it would be a possible duplicate.
            try await test.buys("q", by: "bob", days: -1.9)
            try await test.acknowledgeAll()
            try await test.check(
                try await test.send("receipt of q", for: second), test.bought([("q", "coins")], days: -1.9, asOf: -0.8))
            #expect(try await test.owners() == "p ann, q bob")
            #expect(try await test.log(of: second) == "created placed")
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "An order's customer gets what was skipped for another one", arguments: ["erased", "person", "duplicate"],
        ["proof", "token", "upload"])
    func skipped(because reason: String, paidBy way: String) async throws {
        // A consumable that another customer owns does not move with an upload.
        if way == "upload", reason != "erased" { return }
        try await withLedger { test in
            try await test.sellDeliverables()
            if reason == "duplicate" { try await test.buys("o", by: "bob") }
            try await test.buys("p", by: "bob")
            let decision = try ManualDecision(by: "kim", because: "asked for it")
            switch reason {
            case "erased": _ = try await test.ledger.customers.erase("bob", of: test.app.bundleID, deciding: decision)
            case "person":
                let deliveries = test.ledger.acting(as: .user("kim")).deliveries
                let due = try await deliveries.read(
                    of: test.app.bundleID, state: .due, after: 0, limit: 10)
                let one = try #require(due.deliveries.first)
                _ = try await deliveries.skip(one.id, of: test.app.bundleID, because: "a mistake")
            default: break
            }
            let order = try await test.place()
            var answer = test.bought([("p", "coins")], asOf: -0.9)
            if way == "token" { answer = answer.carrying(order.appAccountToken) }
            let receipt =
                way == "upload" ? try await test.upload("receipt") : try await test.send("receipt", for: order)
            try await test.check(receipt, answer)
            if reason == "duplicate", way == "proof" {
                // It may be what was given to bob.
                #expect(try await test.log(of: order) == "created placed")
                #expect(try await test.deliveries().last == "1 purchase possible_duplicate bob 100")
                #expect(try await test.violations() == [])
                return
            }
            #expect(try await test.log(of: order) == "created placed, paid \(way == "upload" ? "product" : way)")
            #expect(try await test.deliveries().last == "3 purchase due ann 100")
            #expect(try await test.violations() == [])
            try await test.check(receipt, answer)
            try await test.acknowledgeAll()
            #expect(try await test.log(of: order).hasSuffix(", delivered acknowledged"))
            #expect(try await test.deliveries().last == "3 purchase acknowledged ann 100")
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "A proof claims nothing that was bought before the order, pays another order, carries another token or is of another product",
        arguments: ["before", "paid", "token", "product", "assigned", "refunded"])
    func refused(because reason: String) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let other = try await test.place(by: "bob", days: -4)
            let order = try await test.place(
                reason == "product" ? "themes" : "coins", days: reason == "before" ? -1.9 : -3)
            var answer = test.bought([("p", "coins")], asOf: -0.9)
            switch reason {
            case "paid": try await test.buys("p", by: "bob")
            case "token": answer = answer.carrying(other.appAccountToken)
            case "assigned":
                try await test.buys("p", by: "eve")
                _ = try await test.ledger.customers.assign(
                    "p", to: "zoe", of: test.app.bundleID,
                    deciding: ManualDecision(by: "kim", because: "called"))
            case "refunded":
                answer = purchase("p", at: test.at(-2), asOf: test.at(-0.9), refundedAt: test.at(-1))
            default: break
            }
            try await test.check(try await test.send("receipt of p", for: order), answer)
            #expect(try await test.log(of: order) == "created placed")
            #expect(try await test.owners() != "p ann")
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "Where Apple takes back what pays an order, its proof claims another purchase, whatever receipt shows the refund"
    )
    func freedByRefund() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await test.check(
                try await test.send("device", for: order),
                test.bought(at: [("p", -2), ("q", -1.9)]))
            #expect(try await test.owners() == "p ann, q -")
            try await test.check(
                try await test.upload("launch", by: "ann"),
                purchase("p", at: test.at(-2), asOf: test.at(-0.9), refundedAt: test.at(-0.95)))
            #expect(try await test.owners() == "p ann, q ann")
            #expect(
                try await test.text("SELECT state || ' ' || transaction_id FROM ledger.purchase_order") == "paid q")
            #expect(try await test.violations() == [])
        }
    }

    @Test("A token names the customer of its order also where a device sends the receipt")
    func tokens() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (order, other) = (try await test.place(by: "bob"), try await test.place())
            try await test.check(
                try await test.send("device", for: other),
                test.bought([("p", "coins")]).carrying(order.appAccountToken))
            #expect(try await test.owners() == "p bob")
            #expect(try await test.log(of: order) == "created placed, paid token")
            #expect(try await test.log(of: other) == "created placed")
        }
    }

    @Test("An answer that lags behind the purchase pays when it comes")
    func later() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            let receipt = try await test.send("device", for: order)
            try await test.check(receipt, outage)
            try await test.run("UPDATE ledger.poll_schedule SET due_at = now(), leased_by = NULL")
            try await test.check(receipt, test.bought([], asOf: -1.9))
            #expect(try await test.log(of: order) == "created placed")
            try await test.run("UPDATE ledger.purchase_order SET state = 'expired', cause = 'not_paid'")
            try await test.check(receipt, test.bought([("p", "coins")]))
            #expect(try await test.log(of: order) == "created placed, expired not_paid, paid proof")
            #expect(try await test.owners() == "p ann")
        }
    }

    @Test("A proof claims a subscription at its purchase, never at a renewal")
    func subscriptions() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place("monthly", days: -10)
            let answer = Answer(from: test.at(-9), asOf: test.at(-1))
            try await test.check(try await test.send("a", for: order), answer)
            #expect(try await test.owner() == "ann")
            #expect(try await test.log(of: order) == "created placed, paid proof")
            let late = try await test.place("monthly", by: "bob", days: -10)
            let renewed = Answer(from: test.at(-39), periods: 2, asOf: test.at(-0.9)).but {
                ($0.subscription, $0.line) = ("2000", "v")
            }
            try await test.check(try await test.send("b", for: late), renewed)
            #expect(try await test.log(of: late) == "created placed")
            #expect(
                try await test.text("SELECT count(*) FROM perennial.subscription_now WHERE customer IS NULL") == "1")
            #expect(try await test.violations() == [])
        }
    }

    @Test("A service names the order: it is paid before older orders of the same product")
    func named() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (older, order) = (try await test.place(days: -3.5), try await test.place())
            let receipt = try await test.send("receipt of p", for: order, by: "ann")
            let settled = try await test.check(receipt, test.bought([("p", "coins")]))
            #expect(settled.orderIDs == [order.id])
            #expect(try await test.log(of: order) == "created placed, paid order")
            #expect(try await test.log(of: older) == "created placed")
            let claim = UploadSender(customer: "ann", orderID: order.id)
            #expect(try await test.ledger.intake.settled(receipt, for: claim, since: nil)?.outcome == .verified)
            _ = try await test.send("receipt of p", for: older)
            let again = UploadSender(customer: nil, orderID: older.id)
            #expect(try await test.ledger.intake.settled(receipt, for: again, since: nil) == nil)
        }
    }

    /// A minute in days.
    private static let minute = 1.0 / 1_440

    @Test("A second pack within ten minutes is the second order's, although the first one's is still in the receipt")
    func secondPack() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let first = try await test.place(days: -2)
            try await test.check(
                try await test.send("1", for: first), test.bought(at: [("p", -2 + Self.minute)]))
            try await test.acknowledgeAll()
            let second = try await test.place(days: -2 + 3 * Self.minute)
            // With nothing bought for it, what paid the first one pays nothing more.
            try await test.check(
                try await test.send("1", for: second), test.bought(at: [("p", -2 + Self.minute)], asOf: -0.9))
            #expect(try await test.log(of: second) == "created placed")
            try await test.check(
                try await test.send("2", for: second),
                test.bought(at: [("p", -2 + Self.minute), ("q", -2 + 4 * Self.minute)], asOf: -0.8))
            #expect(try await test.log(of: first).hasSuffix("delivered acknowledged"))
            #expect(try await test.log(of: second) == "created placed, paid proof")
            #expect(try await test.owners() == "p ann, q ann")
            #expect(try await test.violations() == [])
        }
    }

    @Test("What was delivered before an order pays it no more; what is still due pays the nearest order")
    func boughtBefore() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            try await test.acknowledgeAll()
            let order = try await test.place(days: -2 + 7 * Self.minute)
            let receipt = try await test.send("receipt of p", for: order, by: "ann", naming: "q")
            try await test.check(receipt, test.bought([("p", "coins")], asOf: -0.9))
            #expect(try await test.log(of: order) == "created placed")
            let contents = try await test.ledger.intake.purchases(in: receipt, for: "ann")
            let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
            guard case .nothing = contents.fit(for: read) else {
                Issue.record("something fits")
                return
            }
            // The caller names it: that decides alone.
            try await test.check(
                try await test.send("receipt of p", for: order, by: "ann", naming: "p"),
                test.bought([("p", "coins")], asOf: -0.8))
            #expect(
                try await test.log(of: order) == "created placed, paid transaction, delivered acknowledged")
            try await test.buys("q", by: "bob")
            let late = try await test.place(by: "bob", days: -2 + 9 * Self.minute)
            try await test.check(
                try await test.send("receipt of q", for: late), test.bought([("q", "coins")], asOf: -0.7))
            #expect(try await test.log(of: late) == "created placed, paid proof")
            #expect(try await test.violations() == [])
        }
    }

    @Test("An order that is paid after its delivery was made has it, due or carried out", arguments: [true, false])
    func paidLate(isAcknowledged: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await test.run("UPDATE ledger.purchase_order SET state = 'failed', cause = 'device'")
            try await test.buys("p")
            if isAcknowledged { try await test.acknowledgeAll() }
            #expect(try await test.log(of: order) == "created placed, failed device")
            try await test.check(
                try await test.send("receipt of p", for: order), test.bought([("p", "coins")], asOf: -0.9))
            let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
            #expect(read.state == (isAcknowledged ? .delivered : .paid) && read.deliveryIDs.count == 1)
            #expect(try await test.violations() == [])
            if !isAcknowledged {
                try await test.acknowledgeAll()
                #expect(try await test.log(of: order).hasSuffix(", paid proof, delivered acknowledged"))
            }
        }
    }

    @Test("A stronger cause moves a payment while nothing of it was acknowledged")
    func moved() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (older, newer) = (try await test.place(), try await test.place(days: -2.5))
            try await test.buys("p")
            #expect(try await test.log(of: newer) == "created placed, paid product")
            try await test.check(
                try await test.send("receipt of p", for: older), test.bought([("p", "coins")], asOf: -0.9))
            #expect(try await test.log(of: older) == "created placed, paid proof")
            #expect(try await test.log(of: newer) == "created placed, paid product, created moved")
            #expect(
                try await test.text("SELECT string_agg(order_id, ' ') FROM perennial.delivery_log") == older.id)
            try await test.acknowledgeAll()
            try await test.check(
                try await test.send("receipt of p", for: newer, by: "ann", naming: "p"),
                test.bought([("p", "coins")], asOf: -0.8))
            #expect(try await test.log(of: older).hasSuffix("delivered acknowledged"))
            #expect(try await test.log(of: newer).hasSuffix("created moved"))
            #expect(try await test.violations() == [])
        }
    }

    @Test("A purchase that another customer was given, or that Apple took back, is refused to the order, not absent")
    func refusedNotAbsent() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", by: "bob")
            try await test.acknowledgeAll()
            func fit(_ order: PlacedOrder, _ receipt: ReceiptID) async throws -> ReceiptPurchases.Fit {
                let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
                return try await test.ledger.intake.purchases(in: receipt, for: "ann").fit(
                    for: read)
            }
            let order = try await test.place()
            let receipt = try await test.send("receipt of p", for: order)
            try await test.check(receipt, test.bought([("p", "coins")], asOf: -0.9))
            #expect(try await fit(order, receipt) == .refused)
            let gone = try await test.send("gone", for: order, by: "ann")
            try await test.check(gone, purchase("q", at: test.at(-2), asOf: test.at(-0.8), refundedAt: test.at(-1)))
            #expect(try await fit(order, gone) == .refused)
            let lacking = try await test.send("lacking", for: order, by: "ann")
            try await test.check(lacking, test.bought([("r", "coins")], days: -5, asOf: -0.7))
            #expect(try await fit(order, lacking) == .nothing)
            #expect(try await test.log(of: order) == "created placed")
        }
    }
}
