import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Customers are merged and split, and purchases are assigned manually")
struct MergeTests {
    static let yes: [Cell] = [true, "monthly", "active", nil, "Production", "verified"]
    static let no: [Cell] = [false, nil, nil, nil, nil, "none"]

    private func monthly(_ test: TestLedger, asOf: Double = -1) -> Answer {
        Answer(from: test.at(-9), asOf: test.at(asOf))
    }

    @discardableResult
    private func merge(_ from: String, _ into: String, in test: TestLedger) async throws -> CustomerMerge {
        try await test.ledger.customers.merge(
            from, into: into, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "logged in"))
    }

    @discardableResult
    private func assign(_ id: OriginalTransactionID, to customer: String, in test: TestLedger) async throws -> Int {
        try await test.ledger.customers.assign(
            id, to: customer, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "a mistake"))
    }

    @Test("The old name stands for the new one from then on, and answers as ever of the time before")
    func names() async throws {
        try await withLedger { test in
            try await test.sell()
            let receipt = try await test.upload("a", by: "anon")
            try await test.check(receipt, monthly(test))
            try await test.check(
                try await test.upload("p", by: "anon"), purchase("p", at: test.at(-2), asOf: test.at(-1)))
            try await ManualGrantTests.give(20, of: "pro", to: "anon", in: test)
            let before = try await test.betweenChanges()
            let merged = try await merge("anon", "ann", in: test)
            #expect(merged == CustomerMerge(into: "ann", wasMerged: false, things: 2))
            for name in ["anon", "ann"] {
                #expect(try await test.entitled("monthly", name) == Self.yes)
                #expect(try await test.entitled("coins", name)[0] == true)
                #expect(try await test.entitled("pro", name) == ManualGrantTests.given)
                #expect(try await test.entitled("monthly", name, at: test.at(9)) == Self.yes)
            }
            #expect(try await test.entitled("monthly", "anon", at: before) == Self.yes)
            #expect(try await test.entitled("monthly", "ann", at: before) == Self.no)
            #expect(try await test.entitled("monthly", "anon", knownAt: before) == Self.yes)
            #expect(try await test.entitled("monthly", "ann", knownAt: before) == Self.no)
            #expect(
                try await test.rows("SELECT DISTINCT customer FROM perennial.entitlement_now") == ["ann"])
            #expect(try await test.owner() == "ann")
            #expect(
                try await test.events() == [
                    [1, 0, "subscription.started"], [2, 0, "ownership.assigned"], [3, 0, "ownership.transferred"],
                ])
            try await test.expectRows(
                """
                SELECT customer, cause FROM perennial.ownership_log
                WHERE kind = 'subscription' AND known_until IS NULL ORDER BY valid_from
                """, [["anon", "upload"], ["ann", "merge"]])
            try await test.expectSound()
        }
    }

    @Test("A repeated merge does nothing; a third customer's name and an unknown customer are refused")
    func again() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a", by: "anon"), monthly(test))
            try await merge("anon", "ann", in: test)
            let everything = try await test.everything()
            #expect(try await merge("anon", "ann", in: test).wasMerged)
            #expect(try await merge("ann", "anon", in: test).wasMerged, "they are the same already")
            #expect(try await test.everything() == everything)
            let third = await #expect(throws: LedgerError.self) { try await merge("anon", "cid", in: test) }
            #expect(third?.kind == .exists)
            let unknown = await #expect(throws: LedgerError.self) {
                try await merge("unknown-customer", "ann", in: test)
            }
            #expect(unknown?.kind == .notFound)
            let self_ = await #expect(throws: LedgerError.self) { try await merge("ann", "ann", in: test) }
            #expect(self_?.kind == .invalid)
        }
    }

    @Test("What is uploaded under the old name is the new one's, and takes nothing from them")
    func laterUploads() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a", by: "anon")
            try await test.check(receipt, monthly(test, asOf: -3))
            try await merge("anon", "ann", in: test)
            try await test.upload("a", by: "anon")
            try await test.check(receipt, monthly(test, asOf: -2))
            #expect(try await test.owner() == "ann")
            let second = try await test.upload("b", by: "anon")
            try await test.check(second, monthly(test).but { $0.subscription = "2" })
            #expect(try await test.owner(of: "2") == "ann")
            #expect(
                try await test.rows(
                    "SELECT DISTINCT c.name FROM ledger.upload u JOIN ledger.customer c USING (customer_id)") == ["ann"]
            )
        }
    }

    @Test("An upload that no settlement has served yet is served for the new name")
    func pendingUpload() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a", by: "bob")
            try await test.check(receipt, monthly(test, asOf: -3))
            try await test.upload("a", by: "anon")
            try await test.upload("a", by: "ann")
            try await test.check(receipt, outage)
            try await merge("anon", "ann", in: test)
            try await test.check(receipt, monthly(test))
            #expect(try await test.owner() == "ann")
            #expect(try await test.text("SELECT count(*) FROM ledger.upload WHERE NOT settled") == "0")
        }
    }

    @Test("Names in a row lead to the last one, each from its own day")
    func inARow() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a", by: "one"), monthly(test))
            try await merge("one", "two", in: test)
            let between = try await test.betweenChanges()
            try await merge("two", "three", in: test)
            for name in ["one", "two", "three"] { #expect(try await test.entitled("monthly", name) == Self.yes) }
            #expect(try await test.entitled("monthly", "one", at: between) == Self.yes)
            #expect(try await test.entitled("monthly", "three", at: between) == Self.no)
        }
    }

    @Test("After a split the name is its own again: what moved goes back, what came meanwhile stays")
    func split() async throws {
        try await withLedger { test in
            let split = { (name: String) in
                try await test.ledger.customers.split(
                    name, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "another person"))
            }
            try await test.check(try await test.upload("a", by: "anon"), monthly(test))
            try await test.check(
                try await test.upload("own", by: "ann"), monthly(test).but { $0.subscription = "2" })
            try await merge("anon", "ann", in: test)
            let between = try await test.betweenChanges()
            try await test.check(
                try await test.upload("later", by: "anon"), monthly(test).but { $0.subscription = "3" })
            #expect(try await split("anon") == CustomerSplit(from: "ann", things: 1))
            #expect(try await test.owner() == "anon")
            for id in ["2", "3"] { #expect(try await test.owner(of: id) == "ann") }
            try await test.expectRows(
                """
                SELECT c.name, convert_from(r.data, 'UTF8') FROM ledger.upload u
                JOIN ledger.customer c USING (customer_id) JOIN ledger.receipt r USING (receipt_id) ORDER BY 2
                """, [["anon", "a"], ["ann", "later"], ["ann", "own"]])
            #expect(try await test.entitled("monthly", "anon") == Self.yes)
            #expect(try await test.entitled("monthly", "anon", at: between) == Self.yes, "through the other name")
            try await test.expectRows(
                """
                SELECT customer, cause FROM perennial.ownership_log
                WHERE original_transaction_id = '1000' AND known_until IS NULL ORDER BY valid_from
                """, [["anon", "upload"], ["ann", "merge"], ["anon", "split"]])
            #expect(
                try await test.rows("SELECT DISTINCT customer FROM perennial.entitlement_now ORDER BY 1") == [
                    "ann", "anon",
                ])
            let again = await #expect(throws: LedgerError.self) { try await split("anon") }
            #expect(again?.kind == .invalid)
            try await merge("anon", "cid", in: test)
            #expect(try await test.owner() == "cid")
            #expect(try await split("anon").things == 1)
            #expect(try await test.owner() == "anon")
            try await test.expectSound()
        }
    }

    @Test("The audit has each decision with its author and reason; a decision without effect is not in it")
    func remembered() async throws {
        try await withLedger { test in
            let (ledger, app) = (test.ledger.acting(as: .user("lee")), test.app.bundleID)
            func because(_ reason: String) throws -> ManualDecision { try ManualDecision(by: "kim", because: reason) }
            try await test.check(try await test.upload("a", by: "anon"), monthly(test))
            for _ in 1...2 {
                _ = try await ledger.customers.merge("anon", into: "ann", of: app, deciding: because("logged in"))
                _ = try await ledger.customers.assign(
                    "1000", to: "bob", of: app, deciding: because("a \"shared\" device"))
            }
            _ = try await ledger.customers.split("anon", of: app, deciding: because("another person"))
            try await test.expectRows(
                """
                SELECT actor, action, customer, decided_about::text, detail ->> 'decided_by', detail ->> 'reason'
                FROM perennial.audit_log ORDER BY audit_id
                """,
                [
                    ["user lee", "customer.merged", "ann", "{ann,anon}", "kim", "logged in"],
                    ["user lee", "customer.assigned", "bob", "{ann,bob}", "kim", "a \"shared\" device"],
                    ["user lee", "customer.split", "anon", "{ann,anon}", "kim", "another person"],
                ])
        }
    }

    @Test("A promise about a receipt that Apple has not seen moves too, and ends with the first answer")
    func provisional() async throws {
        try await withLedger { test in
            let receipt = try await ProvisionalTests.say(30, by: "anon", in: test)
            try await merge("anon", "ann", in: test)
            #expect(try await test.entitled() == ProvisionalTests.granted)
            try await test.check(receipt, monthly(test))
            #expect(try await test.entitled() == Self.yes)
            #expect(try await test.owner() == "ann")
        }
    }

    @Test("A manual assignment undoes a transfer: it makes a version and an event, and counts as no transfer")
    func assigned() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a", by: "ann")
            try await test.check(receipt, monthly(test, asOf: -8))
            for index in 1...3 {
                try await test.upload("a", by: "bob\(index)")
                try await test.check(receipt, monthly(test, asOf: -8 + Double(index)))
                #expect(try await test.owner() == "bob\(index)")
                guard index < 3 else { continue }
                #expect(try await assign("1000", to: "ann", in: test) == 1)
                #expect(try await test.owner() == "ann")
            }
            #expect(try await assign("1000", to: "ann", in: test) == 1)
            #expect(try await assign("1000", to: "ann", in: test) == 0)
            try await test.upload("a", by: "cid")
            try await test.check(receipt, monthly(test, asOf: -1))
            #expect(try await test.owner() == "ann", "three transfers by uploads were all there may be")
            #expect(
                try await test.text("SELECT count(*) FROM ledger.event WHERE detail->>'by_hand' = 'assignment'") == "3")
            let error = await #expect(throws: LedgerError.self) { try await assign("7", to: "ann", in: test) }
            #expect(error?.kind == .notFound)
            try await test.expectSound()
        }
    }

    @Test("Merges and settlements of the same receipts at once lose nothing and leave no customer behind")
    func concurrently() async throws {
        try await withLedger(connections: 4) { test in
            var receipts: [ReceiptID] = []
            for index in 0..<6 { receipts.append(try await test.upload("r\(index)", by: "anon\(index)")) }
            let ids = receipts
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, receipt) in ids.enumerated() {
                    let answer = monthly(test).but { $0.subscription = OriginalTransactionID("s\(index)") }
                    group.addTask { try await test.check(receipt, answer) }
                    group.addTask {
                        _ = try await test.ledger.customers.merge(
                            "anon\(index)", into: "ann", of: test.app.bundleID,
                            deciding: ManualDecision(by: "kim", because: "logged in"))
                    }
                }
                try await group.waitForAll()
            }
            for index in 0..<6 { #expect(try await test.owner(of: "s\(index)") == "ann") }
            try await test.expectSound()
        }
    }
}
