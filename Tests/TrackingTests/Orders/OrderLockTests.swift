import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Writers of orders wait for each other in one order, and look at a bounded number")
struct OrderLockTests {
    @Test("A settlement locks what may pay an order before the order, as an acknowledgement does")
    func dueBeforeOrder() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            let order = try await test.place(days: -2 + 5.0 / 1_440)
            let receipt = try await test.send("themes", for: order, by: "ann")
            let settling = try await test.database.transaction { transaction in
                try transaction.script("SELECT FROM ledger.due_delivery FOR NO KEY UPDATE")
                let settling = Task { try await test.check(receipt, test.bought([("t", "themes")], asOf: -0.9)) }
                try transaction.waitUntilAnotherIsBlocked()
                try transaction.script("SELECT FROM ledger.purchase_order FOR NO KEY UPDATE NOWAIT")
                return settling
            }
            _ = try await settling.value
            #expect(try await test.log(of: order) == "created placed, paid product")
            #expect(try await test.violations() == [])
        }
    }

    @Test("Orders that give way are locked in the order of their ids")
    func givesWay() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for _ in 0..<20 { _ = try await test.place() }
            // The one with the highest id is the oldest.
            try await test.run(
                """
                UPDATE ledger.purchase_order o SET created_at = n.at
                FROM (SELECT order_id, now() - interval '1 day' + row_number() OVER (ORDER BY order_id DESC)
                          * interval '1 s' AS at FROM ledger.purchase_order) n
                WHERE n.order_id = o.order_id
                """)
            let placing = try await test.database.transaction { transaction in
                try transaction.script(
                    "SELECT FROM ledger.purchase_order ORDER BY created_at OFFSET 1 LIMIT 1 FOR NO KEY UPDATE")
                let placing = Task {
                    try await test.run(
                        """
                        SELECT FROM ledger.place_orders(
                            array_fill('com.example.app'::text, ARRAY[2]), ARRAY['ann', 'ann'], ARRAY['coins', 'coins'],
                            ARRAY[1, 1], ARRAY[NULL, NULL]::bigint[], ARRAY[NULL, NULL]::text[],
                            ARRAY[NULL, NULL]::bytea[], ARRAY['k1', 'k2'], ARRAY['\\x01', '\\x02']::bytea[],
                            ARRAY[gen_random_uuid(), gen_random_uuid()], ARRAY[gen_random_uuid(), gen_random_uuid()],
                            ARRAY['\\x01', '\\x02']::bytea[], interval '1 day', 20)
                        """)
                }
                try transaction.waitUntilAnotherIsBlocked()
                try transaction.script(
                    "SELECT FROM ledger.purchase_order ORDER BY created_at LIMIT 1 FOR NO KEY UPDATE NOWAIT")
                return placing
            }
            try await placing.value
            #expect(
                try await test.text(
                    """
                    SELECT string_agg(state::text, ' ') FROM (
                        SELECT state FROM ledger.purchase_order ORDER BY created_at LIMIT 3) o
                    """) == "cancelled cancelled created")
        }
    }

    @Test("Two receipts that devices send for one order at once claim one purchase")
    func claimsOnce() async throws {
        try await withLedger(connections: 3) { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            let (one, other) = (try await test.send("a", for: order), try await test.send("b", for: order))
            let settling = try await test.database.transaction { transaction in
                // The first one has decided what it claims, and waits to pay the order.
                try transaction.script("SELECT FROM ledger.purchase_order FOR NO KEY UPDATE")
                let first = Task { try await test.check(one, test.bought([("p", "coins")])) }
                try transaction.waitUntilAnotherIsBlocked()
                let second = Task { try await test.check(other, test.bought([("q", "coins")], days: -1.9)) }
                try transaction.waitUntilAnotherIsBlocked(sessions: 2)
                return [first, second]
            }
            for task in settling { _ = try await task.value }
            #expect(try await test.owners() == "p ann, q -")
            #expect(try await test.log(of: order) == "created placed, paid proof")
            #expect(try await test.violations() == [])
        }
    }

    @Test("What was delivered to a customer is looked at once, however many purchases may pay")
    func deliveredOnce() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            _ = try await test.place(days: -120)
            try await test.run("UPDATE ledger.purchase_order SET quantity = 2")
            // Sixty purchases are delivered, and sixty were made before anything is.
            let days = (0..<120).map { number -> (id: String, days: Double) in
                let first: Double = number < 60 ? -2 : -110
                return (id: "p\(number)", days: first + Double(number) / 1_440)
            }
            try await test.check(try await test.upload("a"), test.bought(at: days))
            #expect(try await test.text("SELECT count(*) FROM ledger.delivery") == "60")
            // What the session read before stays counted until PostgreSQL passes it on.
            let entries = QueuePlanTests.entries
            let read = try await test.database.transaction { transaction in
                let before = try transaction.query(entries)[0].int8("entries")
                let paying = try transaction.query(
                    .test(
                        """
                        SELECT count(*) AS count FROM ledger.paying_transactions(
                            ARRAY(SELECT order_id FROM ledger.purchase_order), interval '10 minutes')
                        """))
                #expect(try paying.first?.int8("count") == 120)
                return try transaction.query(entries)[0].int8("entries") - before
            }
            // Each purchase with each delivery would be 7,200.
            #expect(read > 0 && read <= 600, "\(read) entries for 60 deliveries")
        }
    }

    /// Orders of ann's that ended, or whose payment was not acknowledged.
    private static let manyOrders = """
        INSERT INTO ledger.purchase_order (
            app_id, customer_id, product_id, quantity, state, cause, created_at, expires_at, changed_at, paid_at,
            environment, transaction_id, purchase_id)
        SELECT p.app_id, o.customer_id, 'coins', 1, n.state, 'test', p.purchased_at, now(), now(),
               CASE WHEN n.state = 'paid' THEN now() END,
               CASE WHEN n.state = 'paid' THEN p.environment END, CASE WHEN n.state = 'paid' THEN p.transaction_id END,
               CASE WHEN n.state = 'paid' THEN p.purchase_id END
        FROM ledger.purchase p
        JOIN ledger.ownership o USING (purchase_id)
        CROSS JOIN (VALUES ('expired'::ledger.order_state), ('paid')) AS n(state);
        INSERT INTO ledger.order_receipt (receipt_id, order_id, is_proved, is_new, sent_at)
        SELECT r.receipt_id, o.order_id, false, false, now() - (o.created_at - now())
        FROM ledger.receipt r CROSS JOIN ledger.purchase_order o WHERE o.state = 'expired';
        """

    @Test(
        "Of a customer's orders that ended, and of those that wait for an acknowledgement, the newest hundred may be paid"
    )
    func newestHundred() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let days = (0..<130).map { (id: "p\($0)", days: -2 - Double($0) / 1_440) }
            try await test.check(try await test.upload("a"), test.bought(at: days))
            try await test.run(Self.manyOrders)
            func payable(_ purchases: String, _ receipts: String) async throws -> String {
                try await test.text(
                    """
                    SELECT string_agg(n.line, ', ' ORDER BY n.line) FROM (
                        SELECT concat_ws(' ', o.state, count(*), count(*) FILTER (WHERE o.created_at IN (
                            SELECT p.purchased_at FROM ledger.purchase p ORDER BY p.purchased_at DESC LIMIT 100))) AS line
                        FROM unnest(ledger.payable_orders(
                            ARRAY(SELECT purchase_id FROM ledger.purchase \(purchases)), '{}',
                            ARRAY(SELECT receipt_id FROM ledger.receipt \(receipts)))) AS i(id)
                        JOIN ledger.purchase_order o ON o.order_id = i.id GROUP BY o.state) n
                    """)
            }
            #expect(
                try await payable("ORDER BY purchased_at DESC LIMIT 1", "LIMIT 0") == "expired 100 100, paid 100 100")
            // Of those for which a receipt was sent, the hundred that it was sent for last, which are the oldest here.
            #expect(try await payable("LIMIT 0", "LIMIT 1") == "expired 130 100, paid 100 100")
        }
    }
}
