import Postgres
import SeededRandom
import Subscriptions
import Testing

@testable import Ledger

@Suite("What is remembered is what would be read")
struct RightsLookupTests {
    private static let names = ["ann", "bob", "cat", "dan"]
    private static let steps = 60

    private func names(in test: TestLedger) -> [CustomerName] {
        (Self.names + ["unknown-customer"]).map { CustomerName(AppCustomerID($0), of: test.app.bundleID) }
    }

    /// Compares both; again when the clock passed an instant between two reads.
    private func compare(_ lookup: RightsLookup, in test: TestLedger, after step: String) async throws {
        for _ in 0..<20 {
            let before = try await test.ledger.customers.entitlements(of: names(in: test))
            let reported = try await lookup.rights(of: names(in: test)).map(\.entitlements)
            let toldAgain = try await lookup.rights(of: names(in: test)).map(\.entitlements)
            let remembered = names(in: test).map { lookup.remembered(of: $0)?.entitlements }
            guard try await test.ledger.customers.entitlements(of: names(in: test)) == before else { continue }
            for (known, read) in zip(remembered, before) { #expect(known == nil || known == read, "after \(step)") }
            #expect(reported == before, "after \(step)")
            #expect(toldAgain == before, "again after \(step)")
            return
        }
        Issue.record("the answers never rest, after \(step)")
    }

    /// Makes one random change, or lets time pass; returns its description.
    private func act(in test: TestLedger, using random: inout Seeded) async throws -> String {
        let customer = Self.names[Int.random(in: 0..<Self.names.count, using: &random)]
        let other = Self.names[Int.random(in: 0..<Self.names.count, using: &random)]
        let (app, decision) = (test.app.bundleID, try ManualDecision(by: "kim", because: "seed"))
        let receipt = "r\(Int.random(in: 0..<3, using: &random))"
        let kind = Int.random(in: 0..<13, using: &random)
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

    @Test("A remembered answer equals a new read after every change, at every time", arguments: [1, 2, 3] as [UInt64])
    func agree(seed: UInt64) async throws {
        try await withLedger { test in
            var random = Seeded(seed: seed)
            print(random)
            let lookup = RightsLookup(test.ledger)
            var remembered = 0
            for _ in 0..<Self.steps {
                let step = try await act(in: test, using: &random)
                try await compare(lookup, in: test, after: step)
                remembered = max(remembered, lookup.rememberedCount)
            }
            #expect(remembered == Self.names.count)
        }
    }

    @Test("While others write, no answer is older than the question")
    func beside() async throws {
        try await withLedger(connections: 4) { test in
            let (app, decision) = (test.app.bundleID, try ManualDecision(by: "kim", because: "a race"))
            let lookup = RightsLookup(test.ledger)
            try await withThrowingTaskGroup { group in
                for name in Self.names {
                    group.addTask {
                        for round in 0..<40 {
                            let right = "right \(round)"
                            _ = try await test.ledger.customers.grant(
                                right, to: name, of: app, until: nil, deciding: decision)
                            let reported = try await lookup.rights(of: [CustomerName(AppCustomerID(name), of: app)])[0]
                                .entitlements
                            #expect(reported.contains { $0.name == right && $0.granted }, "\(name) lost \(right)")
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("Ids that Unicode takes for one are two customers, each with their own rights")
    func spellings() async throws {
        try await withLedger { test in
            let (app, decision) = (test.app.bundleID, try ManualDecision(by: "kim", because: "a name"))
            let spellings = ["Ren\u{E9}", "Rene\u{301}"]
            for (right, name) in zip(["one", "two"], spellings) {
                _ = try await test.ledger.customers.grant(right, to: name, of: app, until: nil, deciding: decision)
            }
            let lookup = RightsLookup(test.ledger)
            for _ in 0..<3 {
                for (right, name) in zip(["one", "two"], spellings) {
                    let customer = CustomerName(AppCustomerID(name), of: app)
                    #expect(try await lookup.rights(of: [customer])[0].entitlements.map(\.name) == [right])
                    let remembered = lookup.remembered(of: customer)?.entitlements.map(\.name)
                    #expect(remembered == nil || remembered == [right])
                }
                let both = try await lookup.rights(of: spellings.map { CustomerName(AppCustomerID($0), of: app) })
                #expect(both.map { $0.entitlements.map(\.name) } == [["one"], ["two"]])
            }
            #expect(lookup.rememberedCount == 2)
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
            let lookup = RightsLookup(test.ledger)
            #expect(try await lookup.rights(of: names(in: test))[0].entitlements.map(\.granted) == [false])
            for subscription in ["1000", "2000", "1000", "1000", "2000"] {
                try await say(again: subscription, in: test)
                try await compare(lookup, in: test, after: subscription)
            }
        }
    }

    @Test("What changed of a customer who is asked about is read again before the next question")
    func refreshes() async throws {
        try await withLedger { test in
            let (app, decision) = (test.app.bundleID, try ManualDecision(by: "kim", because: "a change"))
            let (ann, bob) = (CustomerName("ann", of: app), CustomerName("bob", of: app))
            for name in ["ann", "bob"] {
                _ = try await test.ledger.customers.grant("first", to: name, of: app, until: nil, deciding: decision)
            }
            let lookup = RightsLookup(test.ledger)
            for _ in 0..<2 { _ = try await lookup.rights(of: [ann, bob]) }
            _ = try await test.ledger.customers.grant("second", to: "ann", of: app, until: nil, deciding: decision)
            var reported: [String]?
            for _ in 0..<10_000 where reported != ["first", "second"] {
                // The test waits only for bob; it reads ann's answer once that is remembered.
                if lookup.remembered(of: bob) == nil { _ = try await lookup.rights(of: [bob]) }
                reported = lookup.remembered(of: ann)?.entitlements.map(\.name) ?? reported
                try await Task.sleep(for: .milliseconds(2))
            }
            #expect(reported == ["first", "second"])
        }
    }

    @Test("Asked again, the rights are not read again; without a log they always are")
    func reads() async throws {
        try await withLedger { test in
            let lookup = RightsLookup(test.ledger)
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            let ann = [CustomerName("ann", of: test.app.bundleID)]
            _ = try await lookup.rights(of: ann)
            let first = try await lookup.rights(of: ann)[0].entitlements
            // The triggers do not see this change; only a new read of the database does.
            try await test.run(
                "SET LOCAL session_replication_role = replica; UPDATE ledger.subscription SET checked_at = checked_at + interval '1 h'"
            )
            #expect(try await lookup.rights(of: ann)[0].entitlements == first)
            try await test.run("TRUNCATE ledger.right_change, ledger.right_log")
            #expect(try await lookup.rights(of: ann)[0].entitlements != first)
        }
    }
}
