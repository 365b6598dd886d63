import Crypto
import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("An order is paid once, by its own transaction")
struct OrderTests {
    @Test("A repetition gets the same answer, another request with the key is refused")
    func repetitions() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let orders = (try test.sealed).orders
            let first = try await orders.place(orderRequest(), of: test.app.bundleID, requestKey: "k")
            #expect(first.isNew && first.state == .created && Data(base64Encoded: first.key)?.count == 32)
            let again = try await orders.place(orderRequest(), of: test.app.bundleID, requestKey: "k")
            #expect(!again.isNew && again.id == first.id && again.key == first.key)
            #expect(again.appAccountToken == first.appAccountToken && again.expiresAt == first.expiresAt)
            await #expect(throws: LedgerError.self) {
                try await orders.place(orderRequest(by: "bob"), of: test.app.bundleID, requestKey: "k")
            }
            try await test.run("UPDATE ledger.order_request SET asked_at = asked_at - interval '25 hours'")
            #expect(try await orders.place(orderRequest(), of: test.app.bundleID, requestKey: "k").id != first.id)
            let ids = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        try await orders.place(orderRequest(), of: test.app.bundleID, requestKey: "at once").id
                    }
                }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(ids.count == 1)
            let stored = try await test.text("SELECT sealed_key FROM ledger.purchase_order LIMIT 1")
            #expect(!stored.contains(first.key))
        }
    }

    @Test("What cannot be ordered is refused: another quantity, product, price or device, and a 21st open order")
    func refusals() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let orders = (try test.sealed).orders
            var bad = [orderRequest("unknown"), orderRequest(by: "")]
            for quantity in [0, -1, 11, 1_000] as [Int32] {
                bad.append(orderRequest())
                bad[bad.count - 1].quantity = quantity
            }
            // Apple sells one of these at a time.
            for product in ["themes", "monthly"] as [ProductID] {
                bad.append(orderRequest(product))
                bad[bad.count - 1].quantity = 2
            }
            bad.append(orderRequest())
            bad[bad.count - 1].priceMilliunits = 990
            for device in ["", "\0", String(repeating: "x", count: 4_097)] {
                bad.append(orderRequest())
                bad[bad.count - 1].device = device
            }
            for request in bad {
                let error = await #expect(throws: LedgerError.self, "\(request)") {
                    try await orders.place(request, of: test.app.bundleID, requestKey: "k")
                }
                #expect(error?.kind == .invalid)
            }
            var archived = orderRequest()
            archived.device = String(repeating: "x", count: 4_096)
            for index in 0..<20 {
                _ = try await orders.place(archived, of: test.app.bundleID, requestKey: "\(index)")
            }
            try await test.run("UPDATE ledger.purchase_order SET state = 'purchasing'")
            let error = await #expect(throws: LedgerError.self) {
                try await orders.place(orderRequest(), of: test.app.bundleID, requestKey: "one more")
            }
            guard case .exhausted(let seconds) = error?.kind else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect((86_000...86_400).contains(seconds))
            #expect(try await test.text("SELECT count(*) FROM ledger.purchase_order") == "20")
        }
    }

    @Test("Time sorts the changes of an order, whatever the clock says")
    func sortedByTime() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            for state in ["purchasing", "deferred", "failed"] {
                try await test.run(
                    """
                    UPDATE ledger.purchase_order
                    SET state = '\(state)', cause = 'device', changed_at = changed_at - interval '1 minute'
                    """)
            }
            #expect(
                try await test.log(of: order) == "created placed, purchasing device, deferred device, failed device")
        }
    }

    @Test("The oldest untouched order gives way to the 21st; its token still pays it")
    func givesWay() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let touched = try await test.place(days: -4)
            try await test.run("UPDATE ledger.purchase_order SET state = 'purchasing', cause = 'device'")
            let oldest = try await test.place()
            for _ in 0..<18 { _ = try await test.place(days: -2.5) }
            let newest = try await test.place(days: -2.2)
            #expect(try await test.log(of: oldest) == "created placed, cancelled gave_way")
            #expect(try await test.log(of: touched) == "created placed, purchasing device")
            #expect(try await test.log(of: newest) == "created placed")
            #expect(
                try await test.text(
                    "SELECT count(*) FROM ledger.purchase_order WHERE state IN ('created', 'purchasing')") == "20")
            let answer = test.bought([("p", "coins")]).carrying(oldest.appAccountToken)
            try await test.check(try await test.upload("receipt of p"), answer)
            #expect(try await test.log(of: oldest) == "created placed, cancelled gave_way, paid token")
        }
    }

    @Test("The limit of open orders counts those that came with a merged name")
    func givesWayAfterMerge() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for number in 0..<24 { _ = try await test.place(by: number < 12 ? "e" : "f", days: -3) }
            try await test.merge("e", into: "f")
            let newest = try await test.place(by: "f", days: -2)
            #expect(try await test.log(of: newest) == "created placed")
            #expect(
                try await test.text("SELECT count(*) FROM ledger.purchase_order WHERE state = 'created'") == "20")
        }
    }

    @Test("A service cancels an order that is not paid; what has ended stays as it is")
    func cancelled() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (order, paid) = (try await test.place(), try await test.place(by: "bob"))
            let orders = test.ledger.acting(as: .user("kim")).orders
            let upper = order.id.uppercased()
            #expect(try await orders.cancel(upper, of: test.app.bundleID).state == .cancelled)
            #expect(try await orders.cancel(order.id, of: test.app.bundleID).state == .cancelled)
            #expect(try await test.log(of: order) == "created placed, cancelled service")
            let reported = try await test.sealed.orders.report(
                .purchasing, code: nil, of: order.id, proof: order.proof(of: "\(order.id).purchasing."))
            #expect(reported == .cancelled, "a device does not undo what a service cancelled")
            #expect(
                try await test.text("SELECT count(*) FROM perennial.audit_log WHERE action = 'order.cancelled'") == "1")
            try await test.buys("p", by: "bob")
            for (id, kind) in [(paid.id, LedgerError.Kind.exists), (UUID().uuidString, .notFound), ("x", .notFound)] {
                let error = await #expect(throws: LedgerError.self) {
                    try await orders.cancel(id, of: test.app.bundleID)
                }
                #expect(error?.kind == kind)
            }
        }
    }

    @Test(
        "An order whose payer Apple took back is paid by another purchase that fits, and keeps the first one without one"
    )
    func refundedPayer() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            let receipt = try await test.upload("a")
            func refunded(_ days: [(id: String, days: Double)], asOf: Double) -> Finding {
                guard case .verified(var evidence) = test.bought(at: days, asOf: asOf) else {
                    return .verified(
                        .init(
                            environment: .production, asOf: test.at(asOf)))
                }
                evidence.transactions[0].cancelledAt = test.at(-1.5)
                return .verified(evidence)
            }
            try await test.check(receipt, test.bought(at: [("p", -2)]))
            #expect(try await test.log(of: order) == "created placed, paid product")
            try await test.check(receipt, refunded([("p", -2)], asOf: -0.9))
            #expect(try await test.log(of: order) == "created placed, paid product")
            try await test.check(receipt, refunded([("p", -2), ("q", -1.9)], asOf: -0.8))
            let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
            #expect(read.transactionID == "q" && read.state == .paid && read.deliveryIDs.count == 1)
            #expect(try await test.violations() == [])
        }
    }

    @Test("A possible duplicate pays nothing and is listed")
    func duplicates() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (first, second) = (try await test.place(), try await test.place(days: -2.5))
            try await test.check(try await test.upload("a"), test.bought([("p", "coins"), ("q", "coins")]))
            #expect(try await test.log(of: second) == "created placed, paid product")
            #expect(try await test.log(of: first) == "created placed")
            #expect(
                try await test.deliveries() == ["1 purchase due ann 100", "1 purchase possible_duplicate ann 100"])
            // Before, it paid an order that got nothing.
            try await test.run(
                """
                UPDATE ledger.purchase_order o
                SET state = 'paid', cause = 'product', paid_at = now(), environment = 'Production', transaction_id = 'q',
                    purchase_id = (SELECT p.purchase_id FROM ledger.purchase p WHERE p.transaction_id = 'q')
                WHERE o.order_id = '\(first.id)'
                """)
            let found = try await test.violations([.orders])
            #expect(
                found.map(\.detail) == ["order \(first.id) is paid by a possible duplicate, whose delivery was skipped"]
            )
        }
    }

    @Test(
        "What carries its order's token and what was bought beside it without one are two, also where it is learnt later",
        arguments: [["p", "q"], ["q", "p"]], [false, true])
    func besideToken(ids: [String], isLearntLater: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (named, other) = (try await test.place(), try await test.place(days: -2.5))
            let receipt = try await test.upload("a")
            let both = ids.map { (id: $0, product: "coins" as ProductID) }
            if isLearntLater {
                try await test.check(receipt, test.bought(both))
                #expect(try await test.log(of: named) == "created placed")
            }
            try await test.check(receipt, test.bought(both, asOf: -0.9).carrying(named.appAccountToken))
            #expect(try await test.log(of: named) == "created placed, paid token")
            #expect(try await test.log(of: other).hasSuffix(", paid product"))
            #expect(try await test.violations() == [])
            #expect(try await test.deliveries().filter { $0.hasSuffix("purchase due ann 100") }.count == 2)
            try await test.acknowledgeAll()
            for order in [named, other] {
                #expect(try await test.log(of: order).hasSuffix(", delivered acknowledged"))
            }
            #expect(try await test.violations() == [])
        }
    }

    @Test("A non-consumable that is owned already needs no payment, whenever Perennial learns of it")
    func ownedLater() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place("themes", days: -1.5)
            try await test.buys("t", "themes", days: -20)
            #expect(try await test.log(of: order) == "created placed, delivered already_owned")
            // Where Apple sells one at a time, no quantity counts.
            let bobs = try await test.place("themes", by: "bob")
            try await test.buys("u", "themes", quantity: 3, by: "bob")
            #expect(try await test.log(of: bobs) == "created placed, paid product")
        }
    }

    @Test("An order without its delivery is a violation, whether what it gives is due or was carried out")
    func verified() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await test.buys("p")
            #expect(try await test.violations() == [])
            try await test.run(
                "UPDATE ledger.delivery SET order_id = NULL; UPDATE ledger.due_delivery SET order_id = NULL")
            #expect(
                try await test.violations().map(\.detail)
                    == ["order \(order.id) is paid, and a delivery of its transaction does not name it"])
            try await test.acknowledgeAll()
            try await test.run("UPDATE ledger.delivery SET order_id = '\(order.id)'")
            #expect(
                try await test.violations().map(\.detail)
                    == ["order \(order.id) is paid, although its settled deliveries make it delivered"])
        }
    }

    @Test("The customer's newest open order before the purchase is paid, delivered, and refunded")
    func paid() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (second, first) = (try await test.place(), try await test.place(days: -2.5))
            let later = try await test.place(days: -1)
            try await test.buys("p")
            #expect(try await test.log(of: first) == "created placed, paid product")
            try await test.acknowledgeAll()
            #expect(try await test.log(of: first) == "created placed, paid product, delivered acknowledged")
            try await test.buys("p", asOf: -0.8, refunded: -0.9)
            try await test.acknowledgeAll()
            #expect(try await test.log(of: first).hasSuffix(", refunded acknowledged"))
            // One transaction pays one order; what was bought before an order does not pay it.
            try await test.buys("q", days: -1.5)
            #expect(try await test.log(of: second) == "created placed, paid product")
            try await test.buys("r", days: -1.2)
            #expect(try await test.log(of: later) == "created placed")
            let read = try #require(try await (try test.sealed).orders.read(first.id, of: test.app.bundleID))
            #expect(read.state == .refunded && read.transactionID == "p" && read.deliveryIDs.count == 2)
            let all = try await (try test.sealed).orders.read(of: "ann", in: test.app.bundleID, limit: 10)
            #expect(all.map(\.id) == [second.id, first.id, later.id])
            let rest = try await (try test.sealed).orders.read(
                of: "ann", in: test.app.bundleID, state: .created, after: first.id, limit: 10)
            #expect(rest.map(\.id) == [later.id])
        }
    }

    @Test("An account token names the order and its customer, before every other rule")
    func tokens() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let older = try await test.place("monthly", by: "ann", days: -30)
            let named = try await test.place("monthly", by: "ann", days: -20)
            // Bob's device sends the receipt of what ann ordered.
            let answer = Answer(from: test.at(-9), asOf: test.at(-1)).but {
                $0.token = named.appAccountToken.uppercased()
            }
            try await test.check(try await test.upload("a", by: "bob"), answer)
            #expect(try await test.owner() == "ann")
            #expect(try await test.log(of: named) == "created placed, paid token")
            #expect(try await test.log(of: older) == "created placed")
            #expect(try await test.deliveries() == ["1 purchase due ann"])
            // A renewal with the token pays nothing more.
            try await test.check(
                try await test.upload("a", by: "ann"), answer.but { ($0.periods, $0.asOf) = (2, test.at(-0.5)) })
            #expect(try await test.log(of: older) == "created placed")
        }
    }

    @Test("A late payment revives what expired, failed or was cancelled; a merge keeps the customer")
    func revivals() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for (index, state) in ["expired", "failed", "cancelled"].enumerated() {
                let order = try await test.place("monthly", by: "anon \(index)", days: -10)
                try await test.run(
                    "UPDATE ledger.purchase_order SET state = '\(state)' WHERE order_id = '\(order.id)'")
                _ = try await test.ledger.customers.merge(
                    "anon \(index)", into: "ann", of: test.app.bundleID,
                    deciding: ManualDecision(by: "kim", because: "logged in"))
                let answer = Answer(from: test.at(-9), asOf: test.at(-1)).but {
                    ($0.subscription, $0.line) = (OriginalTransactionID("\(index)"), "\(index)")
                    $0.token = order.appAccountToken
                }
                try await test.check(try await test.upload("receipt \(index)", by: "ann"), answer)
                #expect(try await test.log(of: order).hasSuffix(", paid token"))
                #expect(try await (try test.sealed).orders.read(order.id, of: test.app.bundleID)?.customer == "ann")
            }
        }
    }

    @Test("An order for a non-consumable that the customer owns is delivered already, without a delivery")
    func alreadyOwned() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("t", "themes")
            let order = try await test.place("themes", days: -1)
            #expect(order.state == .delivered)
            #expect(try await test.log(of: order) == "delivered already_owned")
            try await test.buys("t", "themes", asOf: -0.5)
            #expect(try await test.log(of: order) == "delivered already_owned")
            #expect(try await test.deliveries().count == 1)
        }
    }

    @Test("A device reports with a proof; a paid order does not change, and a wrong proof is refused")
    func reports() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            let orders = (try test.sealed).orders
            func report(_ state: OrderState, _ code: String?, _ proof: String) async throws -> OrderState? {
                try await orders.report(state, code: code, of: order.id, proof: proof)
            }
            #expect(try await report(.deferred, nil, order.proof(of: "\(order.id).deferred.")) == .deferred)
            #expect(try await report(.failed, "2", order.proof(of: "\(order.id).failed.2")) == .failed)
            #expect(try await test.log(of: order) == "created placed, deferred device, failed device")
            #expect(try await test.text("SELECT max(code) FROM ledger.order_change") == "2")
            for wrong in [
                "", "00", try order.proof(of: "\(order.id).failed.3"),
                try order.proof(of: "\(order.id).failed.2").uppercased(),
                String(repeating: "g", count: 64), String(repeating: "0", count: 64),
            ] {
                #expect(try await report(.cancelled, "2", wrong) == nil)
            }
            let unknown = UUID().uuidString.lowercased()
            #expect(
                try await orders.report(.failed, code: nil, of: unknown, proof: order.proof(of: "\(unknown).failed."))
                    == nil)
            #expect(try await orders.report(.failed, code: nil, of: "x", proof: order.proof(of: "x.failed.")) == nil)
            let receipt = Array("a receipt".utf8)
            let digest = SHA256.hash(data: Data(receipt)).map { String(format: "%02x", $0) }.joined()
            let made = try order.proof(of: "\(order.id).\(digest)")
            #expect(try await orders.accepts(OrderProof(of: order.id, receipt: receipt, code: made)))
            #expect(try await !orders.accepts(OrderProof(of: order.id, receipt: [1], code: made)))
            await #expect(throws: LedgerError.self) {
                try await report(.paid, nil, order.proof(of: "\(order.id).paid."))
            }
            // Swift prints an id in upper case, which the path then does not have.
            let upper = try order.proof(of: "\(order.id.uppercased()).purchasing.")
            #expect(try await report(.purchasing, nil, upper) == .purchasing)
            #expect(try await report(.purchasing, nil, order.proof(of: "\(order.id).purchasing.")) == .purchasing)
            try await test.buys("p")
            #expect(try await report(.cancelled, nil, order.proof(of: "\(order.id).cancelled.")) == .paid)
            try await test.run("UPDATE ledger.purchase_order SET changed_at = changed_at - interval '91 days'")
            #expect(try await report(.cancelled, nil, order.proof(of: "\(order.id).cancelled.")) == nil)
        }
    }

    @Test("An order that is not paid expires")
    func expiry() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (order, other) = (try await test.place(), try await test.place())
            try await test.run(
                "UPDATE ledger.purchase_order SET expires_at = now() - interval '1 s' WHERE order_id = '\(order.id)'")
            try await test.ledger.orders.expire()
            #expect(try await test.log(of: order) == "created placed, expired not_paid")
            #expect(try await test.log(of: other) == "created placed")
        }
    }
}
