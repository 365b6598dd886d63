import Dispatch
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Verification examines everything, slice by slice, without a lock")
struct VerifyLookTests {
    @Test("Sums that are not those of the shares are named with the app and the first day")
    func sums() async throws {
        try await VerifyTests.withLife { test in
            try await test.run("UPDATE ledger.summary_day SET active = active + 1")
            let found = try await test.violations([.summarySums])
            let (day, days) = (
                try await test.text("SELECT min(day)::text FROM ledger.summary_day"),
                try await test.text("SELECT count(DISTINCT day)::text FROM ledger.summary_day")
            )
            let detail = "the summaries of \(day) (days that differ: \(days)) are not the sums of their shares"
            #expect(found.map(\.detail) == [detail])
            #expect(found.first?.sentence.hasPrefix("summary_sums: com.example.app Production: ") == true)
        }
    }

    @Test("A refund that was not taken back is named, and the same catalog again takes it back")
    func deliveries() async throws {
        try await VerifyTests.withLife { test in
            try await test.acknowledgeAll()
            try await test.run("UPDATE ledger.purchase SET revoked_at = now()")
            let found = try await test.violations([.deliveries])
            #expect(found.map(\.detail) == ["turn 2 (refund) of its delivery is not stored"])
            let catalog = try await test.ledger.apps.catalog(of: test.app.bundleID)
            try await test.sell(catalog)
            #expect(try await test.violations([.deliveries]) == [])
            while try await test.ledger.deliveries.release() {}
            #expect(try await test.deliveries().last == "2 refund due bob")
            #expect(try await test.violations([.deliveries]) == [])
        }
    }

    @Test("A one-time purchase that was given to a customer who never owned it, or taken back from another, is found")
    func deliveredToAnother() async throws {
        try await VerifyTests.withLife { test in
            let id = try await test.text("SELECT delivery_id FROM ledger.delivery WHERE purchase_id IS NOT NULL")
            let eve = "(SELECT customer_id FROM ledger.customer WHERE name = 'eve')"
            try await test.run(
                """
                INSERT INTO ledger.delivery (app_id, environment, customer_id, product_id, kind, turn, reason, purchase_id,
                    transaction_id, original_transaction_id, skipped_at, skipped_by, skip_reason)
                SELECT app_id, environment, \(eve), product_id, kind, 2, 'refund', purchase_id, transaction_id,
                    original_transaction_id, now(), 'kim', 'by mistake'
                FROM ledger.delivery WHERE purchase_id IS NOT NULL
                """)
            let taken = try await test.violations([.deliveries]).map(\.detail)
            #expect(taken.contains { $0.hasSuffix("is of another customer than the turn before") }, "\(taken)")
            try await test.run(
                """
                DELETE FROM ledger.delivery WHERE purchase_id IS NOT NULL AND turn = 2;
                UPDATE ledger.delivery SET customer_id = \(eve) WHERE purchase_id IS NOT NULL
                """)
            let given = try await test.violations([.deliveries]).map(\.detail)
            #expect(given == ["delivery \(id) is of a customer who never owned it"])
        }
    }

    @Test("A release of its own product excuses a paid order without a delivery, until a worker has passed it")
    func awaitingRelease() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await test.buys("p")
            try await test.run("DELETE FROM ledger.due_delivery; DELETE FROM ledger.delivery")
            let missing = "order \(order.id) is paid and has no delivery, although the catalog delivers what pays it"
            func look() async throws -> (orders: [String], deliveries: [String], awaiting: [String]) {
                (
                    try await test.violations([.orders]).map(\.detail),
                    try await test.violations([.deliveries]).map(\.detail),
                    try await test.ledger.operations.ordersAwaitingRelease().map { "\($0.productID) \($0.orders)" }
                )
            }
            let owed = "turn 1 (purchase) of its delivery is not stored"
            #expect(try await look() == ([missing], [owed], []))
            func release(_ product: String, after purchase: String) async throws {
                try await test.run(
                    """
                    DELETE FROM ledger.delivery_release;
                    INSERT INTO ledger.delivery_release (app_id, product_id, after_purchase)
                    SELECT app_id, '\(product)', \(purchase) FROM ledger.purchase
                    """)
            }
            try await release("themes", after: "0")
            #expect(try await look() == ([missing], [owed], ["themes 0"]))
            try await release("coins", after: "purchase_id")
            #expect(try await look() == ([missing], [owed], ["coins 0"]))
            try await release("coins", after: "0")
            #expect(try await look() == ([], [], ["coins 1"]))
            while try await test.ledger.deliveries.release() {}
            #expect(try await test.deliveries() == ["1 purchase due ann 100"])
            #expect(try await look() == ([], [], []))
        }
    }

    @Test("Entitlements that are stored otherwise than their sources give are named with the customer's key")
    func entitlements() async throws {
        try await VerifyTests.withLife { test in
            try await test.run("UPDATE ledger.current_entitlements SET spans[1].granted = NOT spans[1].granted")
            let details = [("monthly", 1), ("coins", 2)].map {
                "what is stored of \($0) for the customer with the key \($1) is not what its sources give"
            }
            let found = try await test.violations([.entitlements])
            #expect(found.map(\.detail) == details)
            #expect(found.first?.sentence.hasPrefix("entitlements: com.example.app: what is stored") == true)
            try await test.run("UPDATE ledger.app SET catalog_changed_at = clock_timestamp()")
            #expect(try await test.violations([.entitlements]) == [], "outdated, it is computed")
        }
    }

    @Test("A subscription that nothing polls is found where no check is due any more, too")
    func restingWithoutPoller() async throws {
        try await withLedger { test in
            let over = Answer(from: test.at(-500), asOf: test.at(-1)).but { ($0.willRenew, $0.intent) = (false, "1") }
            try await test.check(try await test.upload("a"), over)
            #expect(try await test.violations() == [])
            try await test.run("UPDATE ledger.subscription SET polled_by = NULL")
            #expect(
                try await test.violations([.poller]).map(\.detail) == [
                    "nothing polls it, receipt 1 could, and no check is due"
                ])
        }
    }

    @Test("An answer about a refunded subscription whose renewal is on is too old after the charge that may come")
    func oldAfterRefund() async throws {
        try await withLedger { test in
            let end = try await test.ledger.now() - .minutes(10)
            let first = Answer(from: end - .days(30), asOf: end - .minutes(50))
            let refunded = first.but { $0.refunded = (0, end - .days(3)) }
            for (willRenew, violations) in [(true, 1), (false, 0)] {
                let answer = refunded.but {
                    ($0.willRenew, $0.asOf) = (willRenew, refunded.asOf + .minutes(willRenew ? 0 : 1))
                }
                try await test.check(try await test.upload("a"), answer)
                try await test.run("UPDATE ledger.poll_schedule SET due_at = now() + interval '1 hour'")
                try await test.run("UPDATE ledger.subscription SET checked_at = now() - interval '1 hour'")
                #expect(try await test.violations([.age]).count == violations, "renewal on: \(willRenew)")
            }
        }
    }

    @Test("A violation behind the first slice is found")
    func secondSlice() async throws {
        try await withLedger { test in
            let uploads = (0...2_000).map {
                Upload(appID: test.app.id, customer: "ann", receipt: Array("receipt \($0)".utf8), imported: true)
            }
            let last = try #require(try await test.ledger.intake.store(uploads).map(\.receiptID).max())
            try await test.run("DELETE FROM ledger.poll_schedule WHERE receipt_id = \(last)")
            #expect(try await test.violations([.scheduled]).map(\.receiptID) == [last])
        }
    }

    @Test("What is over when it is looked at again was work under way")
    func underWay() async throws {
        try await VerifyTests.withLife { test in
            try await test.run("UPDATE ledger.poll_schedule SET due_at = due_at + interval '1 day'")
            var (found, looks) = ([Violation](), 0)
            try await test.ledger.operations.verify([.coverage], test.verifyTerms) { step in
                looks += 1
                found += step.violations
                if looks == 1 {
                    try await test.run("UPDATE ledger.poll_schedule SET due_at = due_at - interval '1 day'")
                }
            }
            #expect(found == [] && looks == 2)
        }
    }

    @Test("A look waits for no lock of a settlement")
    func lockless() async throws {
        try await withLedger(connections: 4) { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            let isLocked = AsyncStream.makeStream(of: Void.self)
            let isOver = DispatchSemaphore(value: 0)
            async let holding: Void = test.database.transaction { transaction in
                for table in ["receipt", "poll_schedule", "subscription", "ownership", "event", "event_feed"] {
                    try transaction.script("LOCK TABLE ledger.\(table) IN EXCLUSIVE MODE")
                }
                isLocked.continuation.yield()
                isOver.wait()
            }
            for await _ in isLocked.stream { break }
            let found = try await test.violations()
            isOver.signal()
            try await holding
            #expect(found == [])
        }
    }
}
