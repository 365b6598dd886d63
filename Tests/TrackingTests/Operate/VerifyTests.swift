import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// What is broken in it is broken one after the other.
private let breakable: OncePerSuite<(TestLedger, KeptRows)> = OncePerSuite { lend in
    try await VerifyTests.withLife { test in
        try await lend((test, try await KeptRows(in: test.connectionString)))
    }
}

@Suite("Verification finds each broken invariant, and none in a sound ledger", breakable)
struct VerifyTests {
    /// One way to break an invariant, and what is named then.
    struct Broken: Sendable, CustomTestStringConvertible {
        let invariant: Invariant
        let script: String
        let detail: String
        var testDescription: String { "\(invariant.rawValue): \(detail)" }

        init(_ invariant: Invariant, _ detail: String, _ script: String) {
            (self.invariant, self.detail, self.script) = (invariant, detail, script)
        }
    }

    private static let cases = [
        Broken(.coverage, "not scheduled", "DELETE FROM ledger.poll_schedule WHERE receipt_id = 1"),
        Broken(
            .coverage, "asked about at",
            "UPDATE ledger.poll_schedule SET due_at = due_at + interval '2 minutes' WHERE receipt_id = 1"),
        Broken(
            .coverage, "asked about at",
            """
            UPDATE ledger.poll_schedule SET leased_by = 1, scheduled_for = scheduled_for + interval '2 minutes'
            WHERE receipt_id = 1
            """),
        Broken(
            .coverage, "leaves it out and another one does not",
            """
            INSERT INTO ledger.receipt_subscription (receipt_id, subscription_id)
            SELECT 2, subscription_id FROM ledger.subscription;
            UPDATE ledger.receipt_subscription SET omitted_at = now() WHERE receipt_id = 1
            """),
        Broken(
            .coverage, "no follow-up is planned",
            """
            INSERT INTO ledger.notification (app_id, received_at, version, kind, environment, original_transaction_id,
                signed_at, effect, texts)
            SELECT app_id, now(), 2, 'REFUND', environment, original_transaction_id, now(), 'asked', ''
            FROM ledger.subscription
            """),
        Broken(
            .coverage, "not scheduled",
            """
            UPDATE ledger.subscription SET next_check_at = NULL;
            DELETE FROM ledger.poll_schedule WHERE receipt_id = 1;
            INSERT INTO ledger.notification (app_id, received_at, version, kind, environment, original_transaction_id,
                signed_at, effect, texts)
            SELECT app_id, now(), 2, 'SUBSCRIBED', environment, original_transaction_id, now(), 'asked', ''
            FROM ledger.subscription
            """),
        Broken(.coverage, "was erased", "UPDATE ledger.receipt SET erased_at = now() WHERE receipt_id = 1"),
        Broken(
            .coverage, "never vouched",
            "UPDATE ledger.subscription SET polled_by = (SELECT max(receipt_id) FROM ledger.receipt)"),
        Broken(.coverage, "does not hold it", "DELETE FROM ledger.receipt_subscription WHERE receipt_id = 1"),
        Broken(
            .poller, "receipt 1 could", "UPDATE ledger.subscription SET polled_by = NULL, next_check_at = NULL"),
        Broken(.nextCheck, "no check is planned", "UPDATE ledger.subscription SET next_check_at = NULL"),
        Broken(
            .nextCheck, "the rules give",
            "UPDATE ledger.subscription SET next_check_at = next_check_at + interval '10 days'"),
        Broken(
            .age, "the newest answer is of",
            "UPDATE ledger.subscription SET checked_at = checked_at - interval '40 days'"),
        Broken(
            .facts, "expires_at is",
            "UPDATE ledger.subscription SET expires_at = expires_at + interval '1 second'"),
        Broken(
            .facts, "timeline from",
            "UPDATE ledger.subscription_span SET product_id = 'other' WHERE upper_inf(known) AND upper_inf(valid)"),
        Broken(
            .timeline, "its timeline ends",
            """
            UPDATE ledger.subscription_span SET known = tstzrange(lower(known), now())
            WHERE upper_inf(known) AND upper_inf(valid)
            """),
        Broken(
            .timeline, "a gap or an overlap",
            """
            UPDATE ledger.subscription_span SET valid = tstzrange(lower(valid) + interval '1 s', upper(valid))
            WHERE upper_inf(known) AND upper_inf(valid)
            """),
        Broken(
            .timeline, "begins after",
            "UPDATE ledger.subscription SET started_at = started_at - interval '1 s'"),
        Broken(
            .timeline, "no present timeline",
            "UPDATE ledger.subscription_span SET known = tstzrange(lower(known), now()) WHERE upper_inf(known)"),
        Broken(
            .ownership, "two customers",
            """
            ALTER TABLE ledger.ownership DROP CONSTRAINT ownership_of_subscription_says_one_thing;
            INSERT INTO ledger.ownership (subscription_id, customer_id, valid, known)
            SELECT subscription_id, 2, valid, known FROM ledger.ownership WHERE subscription_id IS NOT NULL
            """),
        Broken(
            .deliveries, "turn 1 (purchase)", "DELETE FROM ledger.delivery WHERE subscription_id IS NOT NULL"),
        Broken(.deliveries, "is neither due nor", "DELETE FROM ledger.due_delivery WHERE delivery_id = 1"),
        Broken(
            .deliveries, "is of another app", "UPDATE ledger.delivery SET app_id = app_id + 1 WHERE delivery_id = 1"),
        Broken(.deliveries, "is another one in", "UPDATE ledger.due_delivery SET position = 9 WHERE delivery_id = 1"),
        Broken(
            .deliveries, "is more than one of", "SELECT ledger.store_acknowledgement(ARRAY[2]::bigint[], 'twice')"),
        Broken(
            .deliveries, "is of another customer than the turn before",
            """
            INSERT INTO ledger.delivery (app_id, environment, customer_id, product_id, kind, turn, reason, subscription_id,
                period_id, transaction_id, original_transaction_id, skipped_at, skipped_by, skip_reason)
            SELECT app_id, environment, 2, product_id, kind, 2, 'refund', subscription_id, period_id, transaction_id,
                original_transaction_id, now(), 'perennial', 'erased'
            FROM ledger.delivery WHERE subscription_id IS NOT NULL AND turn = 1
            """),
        Broken(
            .deliveries, "is of other units than the turn before",
            """
            INSERT INTO ledger.delivery (app_id, environment, customer_id, product_id, kind, credit, units, turn, reason,
                subscription_id, period_id, transaction_id, original_transaction_id, skipped_at, skipped_by, skip_reason)
            SELECT app_id, environment, customer_id, product_id, 'consumable', 'coins', t.units, t.turn, t.reason,
                subscription_id, 99, transaction_id, original_transaction_id, now(), 'perennial', 'erased'
            FROM (SELECT * FROM ledger.delivery WHERE subscription_id IS NOT NULL LIMIT 1) d,
                (VALUES (5, 1, 'purchase'), (6, 2, 'refund')) t (units, turn, reason)
            """),
        Broken(
            .deliveries, "is of a customer who never owned it",
            "UPDATE ledger.delivery SET customer_id = 2 WHERE subscription_id IS NOT NULL AND turn = 1"),
        Broken(
            .events, "a later version than",
            "UPDATE ledger.event SET version = 9 WHERE subscription_id IS NOT NULL AND version = 1"),
        Broken(.events, "has no place", "DELETE FROM ledger.event_feed WHERE position = 1"),
        Broken(.events, "no event tells of it", "DELETE FROM ledger.event WHERE subscription_id IS NOT NULL"),
        Broken(
            .events, "no event tells of its period",
            "DELETE FROM ledger.event WHERE kind::text = 'subscription.renewed'"),
        Broken(
            .events, "it is active since",
            """
            UPDATE ledger.event SET kind = 'subscription.expired', occurred_at = occurred_at - interval '45 days',
                as_of = as_of - interval '45 days' WHERE kind::text = 'subscription.renewed'
            """),
        Broken(
            .events, "it is expired since",
            """
            UPDATE ledger.event SET occurred_at = occurred_at - interval '45 days', as_of = as_of - interval '45 days'
            WHERE kind::text = 'subscription.renewed';
            UPDATE ledger.subscription_span p SET state = 'expired', reason = 'unknown', entitled = false
            FROM ledger.subscription s
            WHERE s.subscription_id = p.subscription_id AND upper_inf(p.known) AND p.valid @> s.as_of
            """),
        Broken(
            .events, "its renewal is on, and the newest event is auto_renew.disabled",
            "UPDATE ledger.event SET kind = 'auto_renew.disabled' WHERE kind::text = 'subscription.renewed'"),
        Broken(
            .feed, "before an earlier change",
            """
            UPDATE ledger.event_feed SET position = 100 WHERE position = 1;
            UPDATE ledger.event_feed SET position = 1 WHERE position = 2;
            UPDATE ledger.event_feed SET position = 2 WHERE position = 100
            """),
        Broken(.feed, "has another app", "UPDATE ledger.event SET app_id = app_id + 1 WHERE event_id = 1"),
        Broken(
            .summaries, "another share of",
            "UPDATE ledger.summary_share SET active = active + 1 WHERE active > 0"),
        Broken(.summaries, "other paying rows", "UPDATE ledger.summary_paying SET product_id = 'other'"),
        Broken(.summaries, "other revenue rows", "DELETE FROM ledger.summary_revenue"),
        Broken(.summaries, "other renewal rows", "UPDATE ledger.summary_renewal SET was_awaited = NOT was_awaited"),
        Broken(
            .summaries, "other trial rows",
            """
            INSERT INTO ledger.summary_trial (subscription_id, product_id, started_at, ends_at)
            SELECT subscription_id, 'monthly', now(), now() FROM ledger.summarised
            """),
    ]

    /// A subscription that renewed, a one-time purchase, and a receipt that nothing is known of.
    static func withLife(_ body: (TestLedger) async throws -> Void) async throws {
        try await withNewLedger { test in
            let coins = CatalogProduct(id: "coins", kind: .nonConsumable, entitlements: ["coins"])
            let monthly = CatalogProduct(id: "monthly", kind: .autoRenewable, entitlements: ["monthly"])
            try await test.sell(
                [coins, monthly].map { product in
                    var product = product
                    product.deliversSince = test.at(-100)
                    return product
                })
            while try await test.ledger.deliveries.release() {}
            let receipt = try await test.upload("a")
            let first = Answer(from: test.at(-40), asOf: test.at(-20)).but { $0.createdAt = test.at(-39) }
            try await test.check(receipt, first)
            try await test.check(receipt, first.but { ($0.periods, $0.asOf) = (2, test.at(-1)) })
            let bought = purchase("p", at: test.at(-3), asOf: test.at(-1))
            try await test.check(try await test.upload("b", by: "bob"), bought)
            try await test.upload("never", by: "eve")
            try await test.ledger.feed.sequence()
            while try await test.ledger.operations.summarise()?.isBehind == true {}
            try await body(test)
        }
    }

    @Test("What settlements leave keeps every invariant")
    func sound() async throws {
        try await Self.withLife { test in
            #expect(try await test.violations() == [])
            let covered = try await test.text(
                "SELECT count(*) FROM ledger.subscription WHERE next_check_at IS NOT NULL")
            #expect(covered == "1", "nothing wants a check; this test would prove nothing")
        }
    }

    @Test("What is broken is found and named", .serialized, arguments: cases)
    func broken(_ broken: Broken) async throws {
        try await breakable.use { test, rows in
            try await rows.putBack()
            try await test.run(broken.script)
            let found = try await test.violations([broken.invariant])
            let violation = try #require(found.first { $0.detail.contains(broken.detail) }, "found \(found)")
            #expect(found.allSatisfy { $0.invariant == broken.invariant })
            #expect(violation.bundleID == "com.example.app" && violation.environment == .production)
            #expect(violation.originalTransactionID == "1000")
            #expect(violation.sentence.hasPrefix("\(broken.invariant.rawValue): com.example.app Production 1000: "))
        }
    }

    @Test("A delivery of other units than the catalog gives is found, unless the catalog may have changed since")
    func units() async throws {
        try await withNewLedger { test in
            try await test.sellDeliverables()
            try await test.check(try await test.upload("a"), test.bought([("p", "coins")]))
            try await test.run("UPDATE ledger.product SET units_since = now() - interval '1 hour'")
            #expect(try await test.violations([.deliveries]) == [])
            try await test.run("UPDATE ledger.delivery SET units = 101")
            let found = try await test.violations([.deliveries])
            #expect(found.map(\.detail) == ["delivery 1 is of other units than the catalog gives"])
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 101)
            try await test.sell([coins])
            #expect(try await test.violations([.deliveries]) == [])
        }
    }

    @Test("A one-time purchase that no receipt is asked about, though one could be, is found and repaired")
    func unpolledPurchase() async throws {
        try await Self.withLife { test in
            try await test.run("UPDATE ledger.purchase SET polled_by = NULL, next_check_at = NULL")
            let found = try await test.violations([.purchaseCoverage])
            #expect(found.map(\.detail) == ["no receipt is asked about it, and one could be"])
            for violation in found {
                #expect(try await test.ledger.operations.repair(violation, test.verifyTerms)?.receiptID != nil)
            }
            #expect(try await test.violations() == [])
            try await test.run("DELETE FROM ledger.receipt_purchase")
            let unlinked = try await test.violations([.purchaseCoverage])
            #expect(unlinked.map(\.detail) == ["its polling receipt does not hold it"])
            for violation in unlinked { _ = try await test.ledger.operations.repair(violation, test.verifyTerms) }
            #expect(try await test.violations() == [])
            try await test.run("UPDATE ledger.receipt_purchase SET omitted_at = now()")
            try await test.run("UPDATE ledger.purchase SET polled_by = NULL, next_check_at = NULL")
            #expect(try await test.violations([.purchaseCoverage]) == [], "what no answer names was used up")
        }
    }

    @Test("A one-time purchase of whose refund its events tell otherwise, or that has none, is found")
    func untoldRefund() async throws {
        try await Self.withLife { test in
            try await test.run("UPDATE ledger.purchase SET revoked_at = now()")
            #expect(
                try await test.violations([.events]).map(\.detail)
                    == ["it is refunded, and the newest event is purchase.made"])
            try await test.run("UPDATE ledger.purchase SET revoked_at = NULL")
            #expect(try await test.violations([.events]) == [])
            try await test.run(
                """
                DELETE FROM ledger.event_feed f USING ledger.event e WHERE e.event_id = f.event_id AND e.purchase_id IS NOT NULL;
                DELETE FROM ledger.event WHERE purchase_id IS NOT NULL
                """)
            #expect(try await test.violations([.events]).map(\.detail) == ["no event tells of it"])
        }
    }

    @Test("A webhook beyond the feed, and a stream that waits where it has no event, are found by its number")
    func webhooks() async throws {
        try await Self.withLife { test in
            #expect(try await test.violations([.webhooks]) == [])
            try await test.run(
                """
                INSERT INTO ledger.webhook (webhook_id, url, sealed_secret, position)
                VALUES (6, 'https://a/', '', 1000), (7, 'https://a/', '', 1), (8, 'https://a/', '', 1);
                INSERT INTO ledger.webhook_line (webhook_id, stream_of, stream_id, position)
                SELECT 7, 'customer', 99, 1
                UNION ALL
                SELECT 8, 'subscription', e.subscription_id, 2
                FROM ledger.event e JOIN ledger.event_feed f USING (event_id) WHERE f.position = 2
                """)
            #expect(
                try await test.violations([.webhooks]).map(\.detail) == [
                    "webhook 6 is at position 1000, beyond the feed",
                    "webhook 7 has a stream that waits at position 1, where it has no event",
                    "webhook 8 has a stream that waits at position 2, beyond its own",
                ])
        }
    }

    @Test("An empty position of the feed belongs to nothing that could be named")
    func emptyPosition() async throws {
        try await Self.withLife { test in
            try await test.run("DELETE FROM ledger.event_feed WHERE position = 2")
            func empty() async throws -> [Violation] {
                try await test.violations([.feed]).filter { $0.detail.hasSuffix("is empty") }
            }
            let found = try await empty()
            #expect(found.map(\.detail) == ["position 2 is empty"] && found.first?.bundleID == nil)
            #expect(found.first?.sentence.hasPrefix("feed: the feed: position 2 is empty. ") == true)
            try await test.run("UPDATE ledger.feed SET position = position + 1")
            #expect(try await empty().count == 2)
        }
    }

    @Test("A receipt without a usable answer, a forgotten wish and a lease without an end are named by receipt")
    func receipts() async throws {
        try await Self.withLife { test in
            let never = try await test.upload("never", by: "eve")
            try await test.run("UPDATE ledger.worker SET lease_seconds = 60, speedup = 1")
            let claimed = try await test.claim(never)
            #expect(try await test.violations([.scheduled, .wanted, .leases]) == [])
            func leased(_ change: String) async throws {
                try await test.run("UPDATE ledger.poll_schedule SET \(change) WHERE leased_by IS NOT NULL")
            }
            try await leased("want_at = now() - interval '61 s'")
            #expect(try await test.violations([.wanted]).map(\.receiptID) == [claimed.receiptID])
            try await leased("crashes = 1")
            #expect(try await test.violations([.wanted]) == [], "the lease is twice as long after a crash")
            try await leased("due_at = now() + interval '119 s'")
            #expect(try await test.violations([.leases]) == [])
            try await leased("due_at = now() + interval '130 s'")
            #expect(try await test.violations([.leases]).map(\.receiptID) == [never])
            try await test.run("DELETE FROM ledger.poll_schedule WHERE receipt_id = \(never)")
            #expect(try await test.violations([.scheduled]).map(\.receiptID) == [never])
            try await test.run(
                "UPDATE ledger.receipt SET outcome = 'indeterminate', asked_at = now() WHERE receipt_id = \(never)")
            #expect(try await test.violations([.scheduled]).first?.detail.contains("the last answer") == true)
            try await test.run("UPDATE ledger.receipt SET erased_at = now() WHERE receipt_id = \(never)")
            #expect(try await test.violations([.scheduled]) == [])
        }
    }

    @Test("A lease, a back-off, a quarantine and a pause of the app are no lack of coverage")
    func excused() async throws {
        try await Self.withLife { test in
            let receipt = ReceiptID(1)
            try await test.run("UPDATE ledger.subscription SET next_check_at = now()")
            #expect(try await test.violations([.coverage]).count == 1)
            try await test.run("UPDATE ledger.poll_schedule SET scheduled_for = now() WHERE receipt_id = 1")
            let claim = try await test.claim(receipt)
            #expect(try await test.violations([.coverage]) == [], "leased")
            try await test.settle(claim, outage)
            #expect(try await test.violations([.coverage]) == [], "backs off")
            try await test.check(receipt, rejected())
            #expect(try await test.violations([.coverage]) == [], "refused, and there is no other")
            try await test.run(
                """
                UPDATE ledger.receipt SET outcome = 'verified', rejections = 0, rejected_since = NULL;
                UPDATE ledger.poll_schedule SET attempts = 0, backs_off = false
                """)
            #expect(try await test.violations([.coverage]).count == 1)
            try await test.run("UPDATE ledger.poll_schedule SET lane = 'quarantine'")
            #expect(try await test.violations([.coverage]) == [], "in quarantine")
            try await test.run("UPDATE ledger.poll_schedule SET lane = 'sweep', due_at = now() + interval '5 minutes'")
            #expect(try await test.violations([.coverage]).count == 1)
            try await test.check(receipt, rejected(.wrongSecret))
            #expect(try await test.violations([.coverage]) == [], "the app is paused")
        }
    }

    @Test("A worker states its lease and speed-up; the newest sign of life counts")
    func terms() async throws {
        try await withNewLedger { test in
            let own = VerifyTerms(leaseSeconds: 7, speedup: 3)
            #expect(try await test.ledger.operations.verifyTerms(otherwise: own) == own)
            var ledger = test.ledger
            ledger.speedup = 60
            _ = try await ledger.claims.startWorker(host: "h", process: 2, leaseSeconds: 90)
            #expect(
                try await test.ledger.operations.verifyTerms(otherwise: own)
                    == VerifyTerms(leaseSeconds: 90, speedup: 60))
        }
    }

    @Test(
        "A worker that lives fast finds what it stored as it stored it: grace without a date ends once, and violates nothing"
    )
    func livesFast() async throws {
        try await withNewLedger { test in
            var ledger = test.ledger
            ledger.speedup = 100_000
            let receipt = try await test.upload("kim")
            // A month is 26 seconds, and the longest grace 24.
            let start = test.at(-0.001)
            for seconds in [30, 55, 56, 57] as [Int64] {
                var answer = Answer(from: start, asOf: start + Delay(milliseconds: seconds * 1_000)).evidence
                answer.transactions[0].expiresAt = start + Delay(milliseconds: 26_000)
                answer.renewals[0].renewal.inBillingRetry = true
                answer.renewals[0].renewal.expirationIntent = "2"
                answer.renewals[0].renewal.isInGraceByStatus = seconds < 50 ? true : nil
                let claim = try await ledger.claims.claim(receipt, for: test.worker, leaseSeconds: 60)
                _ = try await ledger.settlements.settleInFull([test.settlement(claim, .verified(answer))])
            }
            let ends = try await test.rows("SELECT kind::text FROM ledger.event WHERE kind = 'billing.grace_expired'")
            #expect(ends.count == 1)
            let terms = VerifyTerms(leaseSeconds: 60, speedup: ledger.speedup)
            var found: [String] = []
            try await ledger.operations.verify([.facts], terms) { found += $0.violations.map(\.detail) }
            #expect(found == [])
        }
    }
}

extension TestLedger {
    /// The terms of this ledger's worker, with a second look at once.
    var verifyTerms: VerifyTerms {
        var terms = VerifyTerms(leaseSeconds: 60, speedup: 1)
        terms.secondLookSeconds = 0.02
        return terms
    }

    /// What the ledger violates now.
    func violations(_ invariants: Set<Invariant> = Set(Invariant.allCases)) async throws -> [Violation] {
        var found: [Violation] = []
        try await ledger.operations.verify(invariants, verifyTerms) { found += $0.violations }
        return found
    }
}
