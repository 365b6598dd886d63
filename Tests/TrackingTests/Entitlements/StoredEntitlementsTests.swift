import Postgres
import SQL
import SeededRandom
import Subscriptions
import Testing

@testable import Tracking

@Suite("What is stored of entitlements is what their sources give")
struct StoredEntitlementsTests {
    private static let names = ["ann", "bob", "cat", "dan"]
    private static let steps = 60

    private func names(in test: TestLedger) -> [CustomerName] {
        (Self.names + ["unknown-customer"]).map { CustomerName(AppCustomerID($0), of: test.app.bundleID) }
    }

    /// Makes one random change, or lets time pass; returns its description.
    private func act(in test: TestLedger, using random: inout Seeded) async throws -> String {
        let customer = Self.names[Int.random(in: 0..<Self.names.count, using: &random)]
        let other = Self.names[Int.random(in: 0..<Self.names.count, using: &random)]
        let (app, decision) = (test.app.bundleID, try ManualDecision(by: "kim", because: "seed"))
        let receipt = "r\(Int.random(in: 0..<3, using: &random))"
        let kind = Int.random(in: 0..<15, using: &random)
        do {
            switch kind {
            case 0: try await test.check(try await test.upload(receipt, by: customer), answer(in: test, using: &random))
            case 1:
                let soon = try await test.ledger.now() + Delay(milliseconds: Int64.random(in: 20...200, using: &random))
                _ = try await test.ledger.customers.grant("pro", to: customer, of: app, until: soon, deciding: decision)
            case 2:
                _ = try await test.ledger.customers.grant("pro", to: customer, of: app, until: nil, deciding: decision)
            case 3:
                _ = try await test.ledger.customers.revokeGrant(of: "pro", from: customer, of: app, deciding: decision)
            case 4: _ = try await test.ledger.customers.merge(customer, into: other, of: app, deciding: decision)
            case 5: _ = try await test.ledger.customers.split(customer, of: app, deciding: decision)
            case 6: _ = try await test.ledger.customers.assign("1000", to: customer, of: app, deciding: decision)
            case 7: try await ProvisionalTests.say(9, of: "yearly", receipt: "said", by: customer, in: test)
            case 8:
                let id = "p\(Int.random(in: 0..<2, using: &random))"
                let refund = Bool.random(using: &random) ? test.at(-1) : nil
                try await test.check(
                    try await test.upload(id, by: customer),
                    purchase(id, at: test.at(-2), asOf: try await test.ledger.now(), refundedAt: refund))
            case 9: _ = try await test.ledger.customers.erase(customer, of: app, deciding: decision)
            case 10, 11: try await say(again: kind == 10 ? "1000" : "2000", in: test)
            case 12:
                let names = [["pro"], ["basic"], ["pro", "basic"], []].randomElement(using: &random) ?? []
                try await test.ledger.apps.applyCatalog([CatalogProduct(id: "monthly", entitlements: names)], to: app)
            case 13: _ = try await test.ledger.customers.renewEntitlements()
            default: try await test.run("SELECT pg_sleep(0.06)")
            }
        } catch let error as LedgerError {
            return "\(kind), refused: \(error)"
        }
        return "\(kind) \(customer) \(other) \(receipt)"
    }

    /// Apple says once more what is known of a subscription, and of all one-time purchases.
    private func say(again subscription: String, in test: TestLedger) async throws {
        try await test.run(
            """
            UPDATE ledger.subscription SET as_of = now(), checked_at = clock_timestamp()
            WHERE original_transaction_id = '\(subscription)'
            """)
        try await test.run("UPDATE ledger.purchase SET as_of = now(), checked_at = clock_timestamp() WHERE version > 0")
    }

    /// A subscription whose period ends soon, or did long ago.
    private func answer(in test: TestLedger, using random: inout Seeded) async throws -> Answer {
        let now = try await test.ledger.now()
        let soon = Delay(milliseconds: Int64.random(in: 20...150, using: &random))
        let age = Bool.random(using: &random) ? Delay(milliseconds: soon.milliseconds - 30 * 86_400_000) : .days(-9)
        var answer = Answer(from: now + age, asOf: now)
        answer.subscription = ["1000", "2000"][Int.random(in: 0..<2, using: &random)]
        answer.willRenew = Bool.random(using: &random)
        answer.intent = answer.willRenew == true ? nil : "1"
        return answer
    }

    @Test(
        "After every kind of change a lookup finds what the sources give, now and at every boundary",
        arguments: [1, 2, 3] as [UInt64])
    func agree(seed: UInt64) async throws {
        try await withLedger { test in
            var random = Seeded(seed: seed)
            print(random)
            var stored = 0
            for _ in 0..<Self.steps {
                let step = try await act(in: test, using: &random)
                stored += try await compare(in: test, after: step)
            }
            #expect(stored > Self.steps, "hardly anything was stored; this test would prove little")
        }
    }

    @Test("Two writers of one customer lose no change, and every lookup shows what was committed before it")
    func beside() async throws {
        try await withLedger(connections: 6) { test in
            let (app, decision) = (test.app.bundleID, try ManualDecision(by: "kim", because: "a race"))
            try await withThrowingTaskGroup { group in
                for writer in 0..<4 {
                    group.addTask {
                        for round in 0..<25 {
                            let entitlement = "right \(writer) \(round)"
                            _ = try await test.ledger.customers.grant(
                                entitlement, to: "ann", of: app, until: nil, deciding: decision)
                            let found = try await test.ledger.customers.entitlements(app: app, customer: "ann")
                            #expect(found.contains { $0.name == entitlement && $0.granted }, "\(entitlement) is lost")
                        }
                    }
                }
                group.addTask {
                    for round in 0..<25 {
                        try await test.ledger.apps.applyCatalog(
                            [CatalogProduct(id: "monthly", entitlements: ["pro \(round)"])], to: app)
                        _ = try await test.ledger.customers.renewEntitlements()
                    }
                }
                group.addTask {
                    for round in 0..<25 {
                        let id = "p\(round)"
                        try await test.check(
                            try await test.upload(id, by: "ann"), purchase(id, at: test.at(-2), asOf: test.at(-1)))
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await test.violations([.entitlements]) == [])
            #expect(try await compare(in: test, after: "the race") == 1)
        }
    }

    @Test("A timeline that changes without a new version is stored too, and so are equal promises")
    func withoutVersion() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let first = Answer(from: test.at(-9), asOf: test.at(-1))
            try await test.check(receipt, first)
            try await test.run("UPDATE ledger.app SET outage_allowance_ms = 60 * 86400000::bigint")
            try await test.check(receipt, first.but { $0.asOf = test.at(-0.5) })
            let allowance = """
                SELECT max(s.ends - s.starts) > interval '40 days'
                FROM ledger.current_entitlements v CROSS JOIN unnest(v.spans) s WHERE s.ends < 'infinity'
                """
            #expect(try await test.text(allowance) == "true")
            #expect(try await test.text("SELECT version FROM ledger.subscription") == "2")
            for said in ["said", "said too"] {
                try await ProvisionalTests.say(9, of: "yearly", receipt: said, by: "ann", in: test)
            }
            try await ProvisionalTests.say(9, of: "yearly", receipt: "of an import alone", by: "eve", in: test)
            func eve() async throws -> CustomerEntitlements {
                try await test.ledger.customers.entitlements(of: CustomerName("eve", of: test.app.bundleID))
            }
            #expect(try await eve().source == .computed)
            _ = try await test.ledger.customers.renewEntitlements()
            let stored = try await eve()
            #expect(stored.source == .stored && stored.entitlements.map(\.basis) == ["provisional"])
            let nothing = Evidence(environment: .production, bundleID: "com.example.app", asOf: test.at(-0.1))
            try await test.check(try await test.upload("of an import alone", by: "eve"), .verified(nothing))
            let ended = try await eve()
            #expect(ended.source == .stored && ended.entitlements.isEmpty, "the first verified answer ends a promise")
            #expect(try await test.violations([.entitlements]) == [])
        }
    }

    @Test("The end of a refunded period that outlives the one beside it is stored once it counts")
    func endWithoutSpan() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            func answer(asOf: Instant) -> Finding {
                var evidence = Answer(from: test.at(-32), asOf: asOf).evidence
                let refunded = Answer(from: test.at(-10), asOf: asOf).but {
                    ($0.product, $0.line, $0.refunded) = ("plus", "v", (0, test.at(-8)))
                }
                evidence.transactions += refunded.rows
                return .verified(evidence)
            }
            try await test.check(receipt, answer(asOf: test.at(-6)))
            let version = "SELECT version FROM ledger.subscription"
            let end = "SELECT expires_at FROM ledger.subscription"
            let before = (version: try await test.text(version), end: try await test.text(end))
            try await test.check(receipt, answer(asOf: test.at(-1)))
            #expect(try await test.text(version) == before.version)
            #expect(try await test.text(end) != before.end)
            #expect(try await test.violations([.entitlements]) == [])
        }
    }

    @Test("A row that is missing is found where the sources give anything, and lookups compute it")
    func missing() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            try await test.upload("never verified", by: "eve")
            #expect(try await test.violations([.entitlements]) == [])
            try await test.run("DELETE FROM ledger.current_entitlements")
            let found = try await test.violations([.entitlements])
            #expect(found.count == 1 && found.first?.detail.contains("stored of monthly for") == true, "\(found)")
            let ann = try await test.ledger.customers.entitlements(of: CustomerName("ann", of: test.app.bundleID))
            #expect(ann.source == .computed && ann.entitlements.map(\.granted) == [true])
        }
    }

    @Test("A comparison that runs while a grant ends finds no difference")
    func endsMeanwhile() async throws {
        try await withLedger { test in
            let (app, decision) = (test.app.bundleID, try ManualDecision(by: "kim", because: "a clock"))
            _ = try await test.ledger.customers.grant("pro", to: "ann", of: app, until: nil, deciding: decision)
            try await test.run(
                """
                DO $$ BEGIN
                    UPDATE ledger.manual_grant SET valid = tstzrange(lower(valid), now() + interval '200 ms');
                    DELETE FROM ledger.current_entitlements;
                    INSERT INTO ledger.current_entitlements
                        (customer_id, app_id, catalog_changed_at, computed_at, spans, subscriptions, purchases)
                    SELECT e.customer_id, e.app_id, e.catalog_changed_at, e.computed_at, e.spans, e.subscriptions, e.purchases
                    FROM ledger.compute_entitlements(ARRAY(SELECT customer_id FROM ledger.customer)) e;
                    PERFORM pg_sleep(0.25);
                    ASSERT (SELECT count(*) FROM ledger.current_entitlements) = 1;
                    ASSERT NOT EXISTS (
                        SELECT FROM ledger.entitlement_differences(ARRAY(SELECT customer_id FROM ledger.customer)));
                END $$
                """)
        }
    }

    @Test("A lookup asks about no instant before the last change, though the clock of a standby is behind")
    func behind() async throws {
        try await withLedger { test in
            let (app, decision) = (test.app.bundleID, try ManualDecision(by: "kim", because: "a clock"))
            _ = try await test.ledger.customers.grant("pro", to: "ann", of: app, until: nil, deciding: decision)
            // As a clock that is 10 minutes behind sees it.
            try await test.run(
                """
                UPDATE ledger.current_entitlements
                SET computed_at = computed_at + interval '10 min', spans[1].starts = spans[1].starts + interval '10 min'
                """)
            let found = try await test.ledger.customers.entitlements(of: CustomerName("ann", of: app))
            #expect(found.entitlements.map(\.granted) == [true] && found.source == .stored)
            try await test.run("UPDATE ledger.current_entitlements SET computed_at = now() + interval '2 days'")
            let computed = try await test.ledger.customers.entitlements(of: CustomerName("ann", of: app))
            #expect(computed.entitlements.map(\.granted) == [true] && computed.source == .computed)
        }
    }

    @Test("Ids that Unicode takes for one are two customers, each with entitlements of their own")
    func spellings() async throws {
        try await withLedger { test in
            let (app, decision) = (test.app.bundleID, try ManualDecision(by: "kim", because: "a name"))
            let spellings = ["Ren\u{E9}", "Rene\u{301}"]
            for (right, name) in zip(["one", "two"], spellings) {
                _ = try await test.ledger.customers.grant(right, to: name, of: app, until: nil, deciding: decision)
            }
            let both = try await test.ledger.customers.entitlements(
                of: spellings.map { CustomerName(AppCustomerID($0), of: app) })
            #expect(both.map { $0.entitlements.map(\.name) } == [["one"], ["two"]])
            #expect(both.map(\.source) == [.stored, .stored])
        }
    }

    @Test("Of two sources that differ in clocks alone, a lookup shows the one that was checked last")
    func ties() async throws {
        try await withLedger { test in
            for (receipt, subscription) in [("a", "1000"), ("b", "2000")] {
                let over = Answer(from: test.at(-40), asOf: test.at(-1)).but {
                    ($0.subscription, $0.willRenew, $0.intent) = (OriginalTransactionID(subscription), false, "1")
                }
                try await test.check(try await test.upload(receipt), over)
            }
            let ann = try await test.ledger.customers.entitlements(app: test.app.bundleID, customer: "ann")
            #expect(ann.map(\.granted) == [false])
            for subscription in ["1000", "2000", "1000", "1000", "2000"] {
                try await say(again: subscription, in: test)
                _ = try await compare(in: test, after: subscription)
            }
        }
    }
}

extension StoredEntitlementsTests {
    /// Undoes what a comparison changes.
    private struct Undone: Error {
        let stored: Int
    }

    /// Compares what is stored with what the history functions give, in one snapshot: now by Swift and by SQL, and at
    /// every later boundary, a millisecond before and after it, by Swift. Returns how many customers have it stored.
    private func compare(in test: TestLedger, after step: String) async throws -> Int {
        let names = names(in: test)
        let parameters: [Parameter] = [.texts(names.map(\.bundleID.text)), .texts(names.map(\.id.text))]
        do {
            return try await test.database.transaction { transaction -> Int in
                let rows = try transaction.query(Queries.currentEntitlements, parameters)
                let clock = try transaction.query(.test("SELECT now() AS now"))
                let now = try #require(clock.first).timestamptz("now")
                let stored = try StoredEntitlements.read(rows, of: names.count)
                func found(_ instant: Int64?) throws -> [[Entitlement]] {
                    let rows = try transaction.query(
                        Queries.entitlements, parameters + [.timestamptz(microseconds: instant), .instant(nil)])
                    return try Self.byPlace(rows, of: names.count)
                }
                for (name, stored) in zip(names, stored) {
                    let alone = try StoredEntitlements(
                        try transaction.query(
                            Queries.currentEntitlements, [.texts([name.bundleID.text]), .texts([name.id.text])]))
                    #expect(alone?.entitlements(at: now) == stored?.entitlements(at: now), "alone after \(step)")
                }
                let byStored = try found(nil)
                let boundaries = Set(stored.flatMap { $0?.spans ?? [] }.flatMap { [$0.starts, $0.ends] })
                for boundary in boundaries where boundary > now && boundary < .max {
                    for instant in [boundary - 1_000, boundary, boundary + 1_000] where instant > now {
                        for (stored, computed) in zip(stored, try found(instant)) {
                            let swift = stored?.entitlements(at: instant)
                            #expect(swift == nil || swift == computed, "at \(instant - now) µs after \(step)")
                        }
                    }
                }
                try transaction.script("UPDATE ledger.current_entitlements SET catalog_changed_at = '-infinity'")
                let computed = try found(nil)
                #expect(byStored == computed, "SQL after \(step)")
                for (stored, computed) in zip(stored, computed) {
                    let swift = stored?.entitlements(at: now)
                    #expect(swift == nil || swift == computed, "Swift after \(step)")
                }
                throw Undone(stored: stored.count { $0?.spans.isEmpty == false })
            }
        } catch let undone as Undone {
            return undone.stored
        }
    }

    private static func byPlace(_ rows: [Row], of count: Int) throws -> [[Entitlement]] {
        var found = [[Entitlement]](repeating: [], count: count)
        for row in rows where try row.isNull("entitlement") == false {
            found[Int(try row.int8("place")) - 1].append(try Entitlement(row: row))
        }
        return found
    }
}
