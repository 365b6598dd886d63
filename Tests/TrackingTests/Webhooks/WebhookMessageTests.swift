import Foundation
import Postgres
import SeededRandom
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import Tracking

@Suite("A message lets a mirror be right by the clock alone, adds up, and is the same at each attempt")
struct WebhookMessageTests {
    @Test("What is stored and what the history says are the same entitlements, at every event")
    func storedAsHistory() async throws {
        try await withLedger(connections: 4) { test in
            var random = Seeded(seed: 2)
            try await test.live(50, &random)
            try await test.expectRows(
                """
                WITH newest AS (
                    SELECT e.customer_id, max(e.recorded_at) AS at FROM ledger.event e
                    WHERE e.customer_id IS NOT NULL GROUP BY e.customer_id)
                SELECT n.customer_id FROM newest n JOIN ledger.customer c USING (customer_id)
                WHERE (ledger.rights_known(n.customer_id, n.at)).entitlements <> COALESCE((
                    SELECT jsonb_agg(jsonb_build_object(
                        'entitlement', x.entitlement, 'granted', x.granted, 'until', ledger.iso8601(x.until),
                        'product_id', x.product_id, 'state', x.state, 'reason', x.reason, 'environment', x.environment,
                        'basis', x.basis, 'ended_at', ledger.iso8601(x.ended_at)) ORDER BY x.entitlement COLLATE "C")
                    FROM ledger.entitlements(ARRAY[n.customer_id], n.at, n.at) x WHERE c.merged_into IS NULL), '[]')
                """, [])
        }
    }

    @Test("A transfer names both customers, and money is that of perennial.revenue_event, once")
    func contents() async throws {
        try await withLedger(connections: 4) { test in
            try await test.ledger.apps.applyCatalog(
                [CatalogProduct(id: "monthly", priceMilliunits: 4_990, currency: "EUR", entitlements: ["gold"])],
                to: test.app.bundleID)
            try await test.check(
                try await test.upload("a", by: "ann"), Answer(from: test.at(-40), periods: 2, asOf: test.at(-2)))
            try await test.check(
                try await test.upload("a", by: "bob"), Answer(from: test.at(-40), periods: 2, asOf: test.at(-1)))
            try await test.check(
                try await test.upload("a", by: "bob"),
                Answer(from: test.at(-40), periods: 2, asOf: test.at(-0.5)).but { $0.refunded = (1, test.at(-0.6)) })
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver())
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            let moved = try #require(receiver.taken.first { $0.heard.type == "ownership.transferred" }?.heard.data)
            #expect(moved.customer == "bob" && moved.previous_customer == "ann")
            let lost = try #require(receiver.taken.first { $0.heard.type == "entitlements.changed" }?.heard.data)
            #expect(lost.customer == "ann" && lost.entitlements?.contains(where: \.granted) == false)
            let money = receiver.taken.compactMap(\.heard.data.money).joined()
            let expected = try await test.row(
                "SELECT count(*), COALESCE(sum(amount_milliunits), 0) FROM perennial.revenue_event")
            #expect(
                [Cell.count(money.count), .number(Double(money.compactMap(\.amount_milliunits).reduce(0, +)))]
                    == expected)
            let refund = try #require(receiver.taken.first { $0.heard.type == "refund.granted" }?.heard.data)
            #expect(refund.money?.map(\.kind) == ["refund"])
            #expect(try await test.differences(of: receiver) == [])
        }
    }

    @Test("What becomes known without an event changes no message")
    func withoutEvent() async throws {
        try await withLedger(connections: 4) { test in
            try await test.ledger.apps.applyCatalog(
                [
                    CatalogProduct(id: "monthly", entitlements: ["gold"]),
                    CatalogProduct(id: "themes", entitlements: ["themes"]),
                ], to: test.app.bundleID)
            let paid = Answer(from: test.at(-40), periods: 2, asOf: test.at(-3))
            let refunded = paid.but { ($0.asOf, $0.refunded) = (test.at(-2), (1, test.at(-2.6))) }
            for answer in [paid, refunded] { try await test.check(try await test.upload("a", by: "ann"), answer) }
            try await test.buys("t", "themes", days: -5, asOf: -3)
            try await test.buys("t", "themes", days: -5, asOf: -2, refunded: -2.2)
            func messages() async throws -> [String] {
                try await test.ledger.feed.sequenceAll()
                let statement = Statement.test(
                    """
                    SELECT m.body FROM ledger.webhook_messages(ARRAY(SELECT position FROM ledger.event_feed)) m
                    ORDER BY m.position
                    """)
                return try await test.database.query(statement).map { try $0.text("body") }
            }
            let before = try await messages()
            #expect(before.contains { $0.contains("refund.granted") && $0.contains("ended_at") })
            try await test.check(
                try await test.upload("a", by: "ann"),
                refunded.but { ($0.asOf, $0.refunded) = (test.at(-1), (1, test.at(-2.5))) })
            try await test.buys("t", "themes", days: -5, asOf: -1, refunded: -2.1)
            #expect(try await messages() == before)
            #expect(
                try await test.text("SELECT count(DISTINCT ended_at) FROM perennial.entitlement_now") == "2",
                "both dates are known now")
        }
    }

    @Test("Access says of which environment it is, so that a tester is not taken for a customer")
    func environments() async throws {
        try await withLedger(connections: 4) { test in
            let answer = Answer(from: test.at(-9), asOf: test.at(-2)).but { $0.environment = .sandbox }
            try await test.check(try await test.upload("a", by: "ann"), answer)
            try await test.check(
                try await test.upload("b", by: "bob"), answer.but { ($0.subscription, $0.line) = ("2000", "b") })
            try await test.check(
                try await test.upload("c", by: "bob"),
                Answer(from: test.at(-8), asOf: test.at(-1)).but { ($0.subscription, $0.line) = ("3000", "c") })
            for name in ["ann", "bob"] { try await grant("right", to: name, in: test) }
            try await test.ledger.feed.sequenceAll()
            let id = try await test.ledger.webhooks.add(
                url: "http://127.0.0.1:1/", environment: .production, from: .beginning
            ).webhook.id
            let receiver = PretendReceiver()
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            let access = Dictionary(
                receiver.taken.map(\.heard.data).sorted { $0.position < $1.position }.map { data in
                    (data.customer ?? "", data.access?.map { "\($0.entitlement) \($0.environment)" })
                }, uniquingKeysWith: { $1 })
            #expect(access["ann"] == ["monthly Sandbox", "right Production"])
            #expect(access["bob"] == ["monthly Production", "monthly Sandbox", "right Production"])
            // A lookup names one environment at an instant, production first.
            #expect(receiver.memory.rights["bob"]?.map(\.environment) == ["Production", "Production"])
            #expect(try await receiver.memory.differencesByClock(from: test.database) == [])
        }
    }

    @Test("A message has at most 20 kB, whatever a customer has: the rights come before the money")
    func size() async throws {
        try await withLedger(connections: 4) { test in
            // Each receipt has more charges than a message takes.
            for name in ["ann", "bob"] {
                try await test.check(
                    try await test.upload(name, by: name),
                    Answer(from: test.at(-30 * 150), periods: 150, asOf: test.at(-2)).but {
                        ($0.subscription, $0.line) = (OriginalTransactionID(name), name)
                    })
            }
            for number in 0..<90 {
                try await grant("\(String(repeating: "é", count: 40))\(number)", to: "bob", in: test)
            }
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver())
            let longest = Mutex(0)
            receiver.watch { call in longest.withLock { $0 = max($0, call.body.count) } }
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            let taken = receiver.taken.map(\.heard.data)
            #expect(taken.count > 90 && longest.withLock { 12_000...20_000 ~= $0 }, "\(longest.withLock { $0 })")
            #expect(taken.filter { $0.money == nil }.allSatisfy { $0.entitlements?.count == 1 })
            #expect(taken.contains { $0.money == nil } && taken.contains { $0.entitlements == nil })
            #expect(taken.allSatisfy { ($0.entitlements == nil) == ($0.access == nil) })
        }
    }

    @Test("By the clock alone a mirror is right while Apple is away, at every step until the allowances are over")
    func outage() async throws {
        try await withLedger(connections: 4) { test in
            var change = AppChange()
            change.outageAllowance = Delay(milliseconds: 1_500)
            try await test.ledger.apps.change(test.app.bundleID, change)
            let leeway = try await test.appNow().leeway
            // What Apple was asked about now ends in 2.5 to 4 seconds, with leeway or without.
            for number in 0..<12 {
                let name = "c\(number)"
                let end = try await test.ledger.now() + Delay(milliseconds: 2_500 + Int64(number) * 120)
                let answer = Answer(
                    from: end - .days(30) - (number % 3 == 2 ? .zero : leeway), asOf: try await test.ledger.now()
                ).but {
                    ($0.subscription, $0.line) = (OriginalTransactionID(name), name)
                    $0.willRenew = number % 3 == 2 ? false : number % 3 == 1 ? nil : true
                }
                try await test.check(try await test.upload(name, by: name), answer)
                if number % 4 == 0 {
                    try await grant("right", to: name, until: end + Delay(milliseconds: 700), in: test)
                }
            }
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver())
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            var counts: Set<Int> = []
            let patience = ContinuousClock.now + .seconds(30)
            while !counts.contains(0), ContinuousClock.now < patience {
                #expect(try await receiver.memory.differencesByClock(from: test.database) == [])
                counts.insert(receiver.memory.granted(at: try await test.ledger.now().iso8601).count)
                try await Task.sleep(for: .milliseconds(60))
            }
            #expect(counts.count > 3 && counts.contains(0), "\(counts.sorted())")
        }
    }

    @Test("Access is what the ledger says of every later instant, if nothing more is heard", arguments: [1, 2, 3])
    func outlook(seed: UInt64) async throws {
        try await withLedger(connections: 4) { test in
            var random = Seeded(seed: seed)
            print(random)
            try await test.live(40, &random)
            try await test.expectRows(
                """
                WITH newest AS (
                    SELECT e.customer_id, max(e.recorded_at) AS at FROM ledger.event e
                    WHERE e.customer_id IS NOT NULL GROUP BY e.customer_id), asked AS (
                    SELECT n.customer_id, n.at, n.at + make_interval(secs => d * 86400 * 2.37) AS instant
                    FROM newest n CROSS JOIN generate_series(0, 50) d)
                SELECT a.customer_id, a.instant FROM asked a
                WHERE ARRAY(SELECT x->>'entitlement'
                            FROM jsonb_array_elements((ledger.rights_known(a.customer_id, a.at)).access) x
                            WHERE COALESCE((x->>'from')::timestamptz <= a.instant, true)
                              AND COALESCE((x->>'until')::timestamptz > a.instant, true) ORDER BY 1)
                   <> ARRAY(SELECT x.entitlement FROM ledger.entitlements(ARRAY[a.customer_id], a.instant, a.at) x
                            JOIN ledger.customer c USING (customer_id)
                            WHERE x.granted AND c.merged_into IS NULL ORDER BY 1)
                """, [])
            try await test.expectRows(
                """
                SELECT count(*) > 3 AS several FROM ledger.customer c JOIN ledger.event e USING (customer_id)
                CROSS JOIN LATERAL jsonb_array_elements((ledger.rights_known(c.customer_id, e.recorded_at)).access) x
                WHERE x->>'until' IS NOT NULL
                """, [[.bool(true)]])
        }
    }

    @Test("The amounts of all messages of a stream add up to perennial.revenue_event, whatever is taken back and again")
    func sums() async throws {
        try await withLedger(connections: 4) { test in
            try await test.sell([
                CatalogProduct(id: "monthly", priceMilliunits: 4_990, currency: "EUR", entitlements: ["gold"]),
                CatalogProduct(id: "coins", priceMilliunits: 990, currency: "EUR", entitlements: ["coins"]),
            ])
            var random = Seeded(seed: 59)
            print(random)
            for number in 0..<12 {
                let receipt = try await test.upload("receipt \(number)")
                var answer = Answer(from: test.at(-100), asOf: test.at(-9))
                (answer.subscription, answer.line) = (OriginalTransactionID("m\(number)"), "m\(number)")
                answer.trial = number % 4 == 3
                for _ in 0..<5 {
                    answer.periods = min(4, answer.periods + Int.random(in: 0...2, using: &random))
                    let refunded =
                        Bool.random(using: &random) ? Int.random(in: 0..<answer.periods, using: &random) : nil
                    answer.refunded = refunded.map { ($0, test.at(-9.5)) }
                    // What is taken back counts on a second answer, ten minutes later.
                    for _ in 0..<2 {
                        answer.asOf = answer.asOf + .hours(1)
                        try await test.check(receipt, answer)
                    }
                }
            }
            for number in 0..<3 {
                let receipt = try await test.upload("coins \(number)")
                for step in number..<4 {
                    for minute in [0.0, 0.01] {
                        try await test.check(
                            receipt,
                            purchase(
                                "p\(number)", at: test.at(-20), asOf: test.at(-8 + Double(step) + minute),
                                refundedAt: step % 2 == 0 ? nil : test.at(-19)))
                    }
                }
            }
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver())
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            let kinds = Set(receiver.taken.map(\.heard.type))
            #expect(
                kinds.isSuperset(of: ["refund.granted", "refund.reversed", "purchase.refunded"]), "\(kinds.sorted())")
            var sums: [String: Int64] = [:]
            for data in receiver.taken.map(\.heard.data) {
                for money in try #require(data.money) {
                    sums[data.event.original_transaction_id ?? "", default: 0] += money.amount_milliunits ?? 0
                }
            }
            let rows = try await test.database.query(
                .test(
                    "SELECT original_transaction_id AS id, sum(amount_milliunits)::bigint AS sum FROM perennial.revenue_event GROUP BY 1"
                ))
            let expected = Dictionary(uniqueKeysWithValues: try rows.map { (try $0.text("id"), try $0.int8("sum")) })
            #expect(sums == expected && sums.count == 15 && Set(sums.values).count > 2, "\(sums)")
        }
    }

    @Test("A message has the same bytes at each attempt, whatever happens in between")
    func sameBytes() async throws {
        try await withLedger(connections: 4) { test in
            var random = Seeded(seed: 4)
            print(random)
            try await test.sell([
                CatalogProduct(id: "monthly", priceMilliunits: 4_990, currency: "EUR", entitlements: ["gold"])
            ])
            try await test.live(40, &random)
            try await grant("soon", to: "zoe", until: try await test.ledger.now() + .seconds(2), in: test)
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver())
            let bodies = Mutex<[String: Set<[UInt8]>]>([:])
            receiver.watch { call in bodies.withLock { _ = $0[call.id, default: []].insert(call.body) } }
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            let first = receiver.taken.count
            try await Task.sleep(for: .seconds(2))
            try await test.run(
                """
                UPDATE ledger.current_entitlements v
                SET (computed_at, spans, subscriptions, purchases) = (
                    SELECT e.computed_at, e.spans, e.subscriptions, e.purchases
                    FROM ledger.compute_entitlements(ARRAY[v.customer_id]) e)
                """)
            try await test.ledger.webhooks.replay(id, from: .beginning)
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            try await test.live(40, &random)
            try await test.ledger.webhooks.replay(id, from: .beginning)
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            #expect(receiver.taken.count > 3 * first && first > 20)
            let differing = bodies.withLock { $0.values.filter { $0.count > 1 } }
            #expect(differing.map { $0.map { String(decoding: $0, as: UTF8.self) } } == [])
        }
    }

    private func grant(_ right: String, to customer: String, until: Instant? = nil, in test: TestLedger) async throws {
        _ = try await test.ledger.customers.grant(
            right, to: customer, of: test.app.bundleID, until: until,
            deciding: ManualDecision(by: "kim", because: "a test"))
    }
}
