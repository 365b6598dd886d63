import Crypto
import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Ledger

private let reused = OncePerSuite<ReusedDatabase>.database()

@Suite("An order is paid once, by its own transaction", .serialized, reused)
struct OrderTests {
    @Test("A repetition gets the same answer, another request with the key is refused")
    func repetitions() async throws {
        try await withLedger(in: reused) { test in
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

    @Test("What cannot be ordered is refused: another quantity, product or price, and a 21st open order")
    func refusals() async throws {
        try await withLedger(in: reused) { test in
            try await test.sellDeliverables()
            let orders = (try test.sealed).orders
            var bad = [orderRequest("unknown"), orderRequest(by: "")]
            for quantity in [0, -1, 11, 1_000] as [Int32] {
                bad.append(orderRequest())
                bad[bad.count - 1].quantity = quantity
            }
            bad.append(orderRequest())
            bad[bad.count - 1].priceMilliunits = 990
            for request in bad {
                let error = await #expect(throws: LedgerError.self, "\(request)") {
                    try await orders.place(request, of: test.app.bundleID, requestKey: "k")
                }
                #expect(error?.kind == .invalid)
            }
            for index in 0..<20 {
                _ = try await orders.place(orderRequest(), of: test.app.bundleID, requestKey: "\(index)")
            }
            let error = await #expect(throws: LedgerError.self) {
                try await orders.place(orderRequest(), of: test.app.bundleID, requestKey: "one more")
            }
            #expect(error?.kind == .exhausted(retryAfterSeconds: 60))
            #expect(try await test.text("SELECT count(*) FROM ledger.purchase_order") == "20")
        }
    }

    @Test("The customer's oldest open order of the product is paid, delivered, and refunded")
    func paid() async throws {
        try await withLedger(in: reused) { test in
            try await test.sellDeliverables()
            let (first, second) = (try await test.place(), try await test.place(days: -2.5))
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
            #expect(all.map(\.id) == [first.id, second.id, later.id])
            let rest = try await (try test.sealed).orders.read(
                of: "ann", in: test.app.bundleID, state: .created, after: first.id, limit: 10)
            #expect(rest.map(\.id) == [later.id])
        }
    }

    @Test("An account token names the order and its customer, before every other rule")
    func tokens() async throws {
        try await withLedger(in: reused) { test in
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
        try await withLedger(in: reused) { test in
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
        try await withLedger(in: reused) { test in
            try await test.sellDeliverables()
            try await test.buys("t", "themes")
            let order = try await test.place("themes")
            #expect(order.state == .delivered)
            #expect(try await test.log(of: order) == "delivered already_owned")
            try await test.buys("t", "themes", asOf: -0.5)
            #expect(try await test.log(of: order) == "delivered already_owned")
            #expect(try await test.deliveries().count == 1)
        }
    }

    @Test("A device reports with a proof; a paid order does not change, and a wrong proof is refused")
    func reports() async throws {
        try await withLedger(in: reused) { test in
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
            #expect(try await report(.purchasing, nil, order.proof(of: "\(order.id).purchasing.")) == .purchasing)
            try await test.buys("p")
            #expect(try await report(.cancelled, nil, order.proof(of: "\(order.id).cancelled.")) == .paid)
            try await test.run("UPDATE ledger.purchase_order SET changed_at = changed_at - interval '91 days'")
            #expect(try await report(.cancelled, nil, order.proof(of: "\(order.id).cancelled.")) == nil)
        }
    }

    @Test("An order that is not paid expires")
    func expiry() async throws {
        try await withLedger(in: reused) { test in
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
