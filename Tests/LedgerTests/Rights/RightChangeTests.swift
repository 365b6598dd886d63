import Postgres
import Subscriptions
import Synchronization
import Testing

@testable import Ledger

@Suite("Every change to what a customer may use is noted in the same commit")
struct RightChangeTests {
    /// A tenth of a second each: longer than any transaction of another test.
    private static let roundsMax = 600

    /// Lets something happen between two looks; what changed.
    private func changes(
        in test: TestLedger, by action: () async throws -> Void
    ) async throws -> RightChanges.Extent {
        let before = try #require(try await test.ledger.customers.rightChanges(since: nil))
        #expect(before.extent == .everything)
        try await action()
        let after = try #require(try await test.ledger.customers.rightChanges(since: before.look))
        let none = try #require(try await test.ledger.customers.rightChanges(since: after.look))
        #expect(none.extent == .these([]), "a change is reported once")
        return after.extent
    }

    /// What the answer about a customer rests on now.
    private func basis(_ customer: String, in test: TestLedger) async throws -> Set<RightBasis> {
        let rights = try await test.ledger.customers.rights(of: [
            CustomerName(AppCustomerID(customer), of: test.app.bundleID)
        ])
        return Set(rights[0].basis)
    }

    /// Whether what changed touches what the answer about a customer rested on before.
    private func touches(
        _ customer: String, in test: TestLedger, by action: () async throws -> Void
    ) async throws -> Bool {
        let before = try await basis(customer, in: test)
        let extent = try await changes(in: test, by: action)
        switch extent {
        case .everything: return true
        case .these(let changed): return !before.isDisjoint(with: changed)
        }
    }

    private func decision() throws -> ManualDecision { try ManualDecision(by: "kim", because: "asked") }

    @Test("A settlement, a purchase and an erasure touch the owner; an equal answer touches no customer")
    func settlements() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let other = try await test.upload("b", by: "bob")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-2)))
            try await test.check(
                other, Answer(from: test.at(-9), asOf: test.at(-2)).but { $0.subscription = "2000" })
            #expect(try await basis("ann", in: test).count == 2)
            let renewed = Answer(from: test.at(-39), periods: 2, asOf: test.at(-1))
            #expect(try await touches("ann", in: test) { try await test.check(receipt, renewed) })
            for hours in [-0.5, -0.4] {
                let again = renewed.but { $0.asOf = test.at(hours) }
                let before = try #require(try await test.ledger.customers.rightChanges(since: nil))
                try await test.check(receipt, again)
                let reported = try #require(try await test.ledger.customers.rightChanges(since: before.look))
                #expect(reported.extent == .these([]) && reported.checks.map(\.asOf) == [again.asOf])
            }
            #expect(
                try await touches("ann", in: test) {
                    try await test.check(
                        try await test.upload("p"), purchase("p", at: test.at(-2), asOf: test.at(-1)))
                })
            #expect(try await basis("ann", in: test).count == 3)
            #expect(
                try await touches("ann", in: test) {
                    let refund = purchase("p", at: test.at(-2), asOf: test.at(-0.5), refundedAt: test.at(-0.6))
                    try await test.check(try await test.upload("p"), refund)
                })
            #expect(
                try await touches("bob", in: test) {
                    _ = try await test.ledger.customers.erase("bob", of: test.app.bundleID, deciding: try decision())
                })
        }
    }

    @Test("Grants, merges, splits, assignments and promises touch whom they are about")
    func people() async throws {
        try await withLedger { test in
            let (app, ledger) = (test.app.bundleID, test.ledger)
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-2)))
            try await test.upload("b", by: "bob")
            #expect(
                try await touches("ann", in: test) {
                    _ = try await ledger.customers.grant(
                        "pro", to: "ann", of: app, until: nil, deciding: try decision())
                })
            #expect(
                try await touches("ann", in: test) {
                    _ = try await ledger.customers.revokeGrant(
                        of: "pro", from: "ann", of: app, deciding: try decision())
                })
            for customer in ["ann", "bob"] {
                #expect(
                    try await touches(customer, in: test) {
                        _ = try await ledger.customers.assign(
                            "1000", to: customer == "ann" ? "bob" : "ann", of: app, deciding: try decision())
                    })
            }
            #expect(
                try await touches("ann", in: test) {
                    _ = try await ledger.customers.merge("ann", into: "bob", of: app, deciding: try decision())
                })
            #expect(try await basis("ann", in: test).isSuperset(of: try await basis("bob", in: test)))
            #expect(
                try await touches("ann", in: test) {
                    _ = try await ledger.customers.grant(
                        "pro", to: "bob", of: app, until: nil, deciding: try decision())
                })
            #expect(
                try await touches("ann", in: test) {
                    _ = try await ledger.customers.split("ann", of: app, deciding: try decision())
                })
            #expect(
                try await touches("bob", in: test) {
                    try await ProvisionalTests.say(9, of: "monthly", receipt: "c", by: "bob", in: test)
                })
            let promised = try await test.upload("c", by: "bob")
            #expect(
                try await touches("bob", in: test) {
                    try await test.check(promised, Answer(from: test.at(-1), periods: 0, asOf: test.at(-0.5)))
                })
        }
    }

    @Test("A new catalog changes everything")
    func catalog() async throws {
        try await withLedger { test in
            let extent = try await changes(in: test) {
                try await test.run(
                    "INSERT INTO ledger.catalog_grant VALUES (1, 'monthly', 'pro', '[2020-01-01,)', '[2020-01-01,)')")
            }
            #expect(extent == .everything)
        }
    }

    @Test("A change is reported as soon as it is committed, however long that takes and whatever was read meanwhile")
    func commitOrder() async throws {
        try await withLedger { test in
            try await test.upload("a")
            try await test.upload("b", by: "bob")
            let grant =
                "INSERT INTO ledger.manual_grant (customer_id, entitlement, valid, known, given_by, reason) VALUES"
            var look = try #require(try await test.ledger.customers.rightChanges(since: nil)).look
            let (began, begin) = AsyncStream<Void>.makeStream()
            let mayCommit = Mutex(false)
            async let slow: Void = test.database.transaction { transaction in
                try transaction.script("\(grant) (1, 'pro', '[2020-01-01,)', '[2020-01-01,)', 'kim', 'x')")
                begin.yield()
                for _ in 0..<1_000 where !mayCommit.withLock(\.self) { try transaction.script("SELECT pg_sleep(0.01)") }
            }
            for await _ in began { break }
            for round in 0..<3 {
                let changes = try #require(try await test.ledger.customers.rightChanges(since: look))
                #expect(changes.extent == .these(round == 1 ? [.customer(2)] : []))
                look = changes.look
                if round == 0 {
                    try await test.run("\(grant) (2, 'pro', '[2020-01-01,)', '[2020-01-01,)', 'kim', 'x')")
                }
            }
            mayCommit.withLock { $0 = true }
            try await slow
            #expect(try await test.ledger.customers.rightChanges(since: look)?.extent == .these([.customer(1)]))
        }
    }

    @Test("Too many changes are a change of everything")
    func tooMany() async throws {
        try await withLedger { test in
            for (count, isEverything) in [
                (LedgerCustomers.rightChangesMax, false), (LedgerCustomers.rightChangesMax + 1, true),
            ] {
                let extent = try await changes(in: test) {
                    try await test.run(
                        "INSERT INTO ledger.right_change (purchases) SELECT ARRAY[n] FROM generate_series(1, \(count)) n"
                    )
                }
                #expect((extent == .everything) == isEverything)
            }
        }
    }

    @Test("Old changes are removed after a while; who has not looked since takes everything for changed")
    func forgetting() async throws {
        try await withLedger { test in
            let old = try #require(try await test.ledger.customers.rightChanges(since: nil)).look
            try await test.upload("a")
            try await ProvisionalTests.say(9, of: "monthly", receipt: "a", by: "ann", in: test)
            var recent = try #require(try await test.ledger.customers.rightChanges(since: old))
            #expect(recent.extent == .these([.customer(1)]))
            let aMinuteLater = "UPDATE ledger.right_log SET noted_at = now() - interval '61 seconds'"
            try await test.ledger.customers.pruneRightLog()
            #expect(
                try await test.text("SELECT count(*) AS n FROM ledger.right_change") == "1",
                "within a minute nothing goes")
            // A transaction that runs in any database of the server may still need them: other tests have such.
            for round in 0..<Self.roundsMax {
                recent = try #require(try await test.ledger.customers.rightChanges(since: recent.look))
                try await test.run(aMinuteLater)
                try await test.ledger.customers.pruneRightLog()
                if try await test.text("SELECT count(*) AS n FROM ledger.right_change") == "0", round > 0 { break }
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(try await test.text("SELECT count(*) AS n FROM ledger.right_change") == "0")
            #expect(try await test.ledger.customers.rightChanges(since: old)?.extent == .everything)
            #expect(try await test.ledger.customers.rightChanges(since: recent.look)?.extent == .these([]))
        }
    }

    @Test("Without a log nothing is remembered; the next one is another one")
    func crash() async throws {
        try await withLedger { test in
            let before = try #require(try await test.ledger.customers.rightChanges(since: nil)).look
            // What a crash of the server does to tables that are not logged.
            try await test.run("TRUNCATE ledger.right_change, ledger.right_log")
            #expect(try await test.ledger.customers.rightChanges(since: before) == nil)
            try await test.ledger.customers.pruneRightLog()
            let after = try #require(try await test.ledger.customers.rightChanges(since: before))
            #expect(after.extent == .everything)
            #expect(try await test.ledger.customers.rightChanges(since: after.look)?.extent == .these([]))
        }
    }

    @Test("A log that came with another cluster's dump is begun anew, and is never taken for the same one")
    func restored() async throws {
        try await withLedger { test in
            for further in [
                "UPDATE ledger.right_log SET forgotten_below = '8000000000000', forgets_next = '8500000000000'",
                "INSERT INTO ledger.right_change (xid, customers) VALUES ('9000000000000', '{1}')",
            ] {
                try await test.run(further)
                let before = try #require(try await test.ledger.customers.rightChanges(since: nil)).look
                #expect(try await test.ledger.customers.rightChanges(since: before)?.extent != .these([]))
                try await test.ledger.customers.pruneRightLog()
                let after = try #require(try await test.ledger.customers.rightChanges(since: before))
                #expect(after.look.log != before.log && after.extent == .everything)
                #expect(try await test.ledger.customers.rightChanges(since: after.look)?.extent == .these([]))
                let start = try await test.text("SELECT pg_postmaster_start_time()::text AS n")
                #expect(after.look.log.hasSuffix(start), "a restart may be a restore")
            }
        }
    }
}
