import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("The policy decides each claim to a purchase")
struct OwnershipDecisionTests {
    enum Said: Equatable { case held, assigned, transferred, refused }

    struct Line: Sendable, CustomTestStringConvertible {
        var claimant = "bob"
        var owner: String? = "ann"
        var transfers = 0
        var policy = OwnershipPolicy.transfer
        /// The customer whom the account token names.
        var named: String?
        var cause = OwnershipCause.upload
        var imported = false
        var isPointer = false
        var givesAccess = true
        var said: Said

        var testDescription: String {
            "\(claimant) from \(owner ?? "no owner") by \(cause), \(transfers) transfers, \(policy), token \(named ?? "-"), "
                + "imported \(imported), pointer \(isPointer), access \(givesAccess)"
        }
    }

    static let table: [Line] = [
        Line(owner: nil, said: .assigned),
        Line(owner: nil, imported: true, said: .assigned),
        Line(claimant: "ann", said: .held),
        Line(claimant: "ann", policy: .keep, imported: true, said: .held),
        Line(said: .transferred),
        Line(transfers: 2, said: .transferred),
        Line(transfers: 3, said: .refused),
        Line(policy: .keep, said: .refused),
        Line(policy: .keep, givesAccess: false, said: .refused),
        Line(policy: .transferIfLapsed, said: .refused),
        Line(policy: .transferIfLapsed, givesAccess: false, said: .transferred),
        Line(transfers: 3, policy: .transferIfLapsed, givesAccess: false, said: .refused),
        Line(imported: true, said: .refused),
        Line(imported: true, givesAccess: false, said: .transferred),
        Line(isPointer: true, said: .refused),
        Line(isPointer: true, givesAccess: false, said: .refused),
        Line(claimant: "ann", isPointer: true, said: .held),
        Line(policy: .keep, named: "bob", said: .transferred),
        Line(transfers: 9, named: "bob", imported: true, said: .transferred),
        Line(named: "bob", isPointer: true, said: .transferred),
        Line(named: "ann", said: .refused),
        Line(named: "cid", said: .refused),
        Line(claimant: "ann", named: "bob", said: .refused),
        Line(claimant: "ann", named: "bob", cause: .assignment, said: .held),
        Line(named: "cid", cause: .assignment, said: .refused),
    ]

    @Test("Each situation has its decision", arguments: table)
    func decide(line: Line) {
        func claim(_ name: String) -> Claimant {
            Claimant(
                customer: CustomerID(number: ["ann": 1, "bob": 2][name] ?? 3), name: name, imported: line.imported,
                isNew: true, isPointer: line.isPointer)
        }
        let owner = line.owner.map {
            Owner(customer: CustomerID(number: 1), name: $0, rowID: 1, transfers: line.transfers, cause: line.cause)
        }
        let answer = decideOwnership(
            of: claim(line.claimant), owner: owner,
            named: line.named.map { OrderCustomers.Named(claimant: claim($0), isOrdered: false) }, policy: line.policy,
            givesAccess: line.givesAccess)
        let said: Said =
            switch answer {
            case .held: .held
            case .assigned: .assigned
            case .transferred: .transferred
            case .refused: .refused
            }
        #expect(said == line.said)
        if case .refused(let why) = answer { #expect(why.hasSuffix(".") && why.count > 20) }
    }
}

@Suite("Settlements give each purchase its owner")
struct OwnershipTests {
    private func monthly(_ test: TestLedger, asOf: Double = -1, token: String? = nil) -> Answer {
        Answer(from: test.at(-9), asOf: test.at(asOf)).but { $0.token = token }
    }

    @Test("At first sight the uploader whom the token names is the owner, else the newest one")
    func firstSight() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a", by: "ann")
            try await test.upload("a", by: "BOB")
            try await test.upload("a", by: "cid")
            let settled = try await test.check(receipt, monthly(test, token: "bob"))
            #expect(settled.subscriptions[0].ownership["BOB"] == .assigned)
            for other in ["ann", "cid"] {
                guard case .refused = settled.subscriptions[0].ownership[AppCustomerID(other)] else {
                    Issue.record("\(other) was not refused")
                    continue
                }
            }
            #expect(try await test.owner() == "BOB")
            let second = try await test.upload("b", by: "ann")
            try await test.upload("b", by: "cid")
            try await test.check(second, monthly(test).but { $0.subscription = "2" })
            #expect(try await test.owner(of: "2") == "cid")
            #expect(
                try await test.events(of: "2") == [[1, 0, "subscription.started"], [2, 0, "ownership.assigned"]])
        }
    }

    @Test("Two names that are written alike are two customers, each with an answer of their own")
    func namesWrittenAlike() async throws {
        try await withLedger { test in
            let (one, two) = ("jos\u{e9}", "jose\u{301}")
            #expect(one == two && AppCustomerID(one) != AppCustomerID(two))
            let receipt = try await test.upload("a", by: one)
            try await test.upload("a", by: two)
            let answers = try await test.check(receipt, monthly(test)).subscriptions[0].ownership
            #expect(answers.count == 2 && answers[AppCustomerID(two)] == .assigned)
            guard case .refused = answers[AppCustomerID(one)] else {
                Issue.record("\(answers)")
                return
            }
            #expect(try await Array(test.owner().utf8) == Array(two.utf8))
            let served = try #require(
                try await test.ledger.intake.settled(
                    receipt, for: UploadSender(customer: one), since: nil)?.subscriptions.first)
            #expect(served.ownership[AppCustomerID(one)] == .refused("Another customer owns it."))
        }
    }

    @Test("What appears later in a receipt belongs to the customer who uploaded it")
    func laterSight() async throws {
        try await withLedger { test in
            try await test.sell()
            let receipt = try await test.upload("a", by: "ann")
            try await test.check(receipt, monthly(test, asOf: -3))
            let second = monthly(test).but { ($0.subscription, $0.product) = ("2", "yearly") }
            try await test.check(receipt, together([monthly(test), second]))
            #expect(try await test.owner(of: "2") == "ann")
            #expect(try await test.entitled("yearly") == [true, "yearly", "active", nil, "Production", "verified"])
            try await test.check(receipt, purchase("p", at: test.at(-1), asOf: test.at(-1)))
            #expect(try await test.entitled("coins") == [true, "coins", "active", nil, "Production", "verified"])
        }
    }

    @Test(
        "Where the first owner keeps it, what comes new in a receipt is the owner's, not a refused uploader's",
        arguments: [OwnershipPolicy.keep, .transferIfLapsed])
    func newInAKeptReceipt(policy: OwnershipPolicy) async throws {
        try await withLedger(policy: policy) { test in
            let receipt = try await test.upload("a", by: "ann")
            try await test.check(receipt, monthly(test, asOf: -4))
            try await test.upload("a", by: "bob")
            let settled = try await test.check(receipt, monthly(test, asOf: -3))
            guard case .refused = settled.subscriptions[0].ownership["bob"] else {
                Issue.record("bob was not refused")
                return
            }
            let second = monthly(test).but { $0.subscription = "2" }
            try await test.check(receipt, together([monthly(test), second]))
            #expect(try await test.owner(of: "2") == "ann")
            let another = try await test.upload("b", by: "bob")
            let third = monthly(test).but { $0.subscription = "3" }
            try await test.check(another, together([monthly(test), third]))
            #expect(try await test.owner(of: "3") == "ann")
        }
    }

    @Test("The newest uploader takes over, three times in 30 days, then no more; each is a version and an event")
    func transfers() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a", by: "c0")
            try await test.check(receipt, monthly(test, asOf: -8))
            for index in 1...4 {
                try await test.upload("a", by: "c\(index)")
                let settled = try await test.check(receipt, monthly(test, asOf: -8 + Double(index)))
                let answer = settled.subscriptions[0].ownership["c\(index)"]
                if index < 4 { #expect(answer == .transferred) }
                guard index == 4 else { continue }
                guard case .refused(let why) = answer else {
                    Issue.record("the fourth transfer was not refused: \(String(describing: answer))")
                    continue
                }
                #expect(why.contains("3 times in 30 days"))
            }
            #expect(try await test.owner() == "c3")
            #expect(
                try await test.events() == [
                    [1, 0, "subscription.started"], [2, 0, "ownership.assigned"], [3, 0, "ownership.transferred"],
                    [4, 0, "ownership.transferred"], [5, 0, "ownership.transferred"],
                ])
            try await test.run("UPDATE ledger.event SET recorded_at = recorded_at - interval '31 days'")
            try await test.upload("a", by: "c4")
            try await test.check(receipt, monthly(test, asOf: -2))
            #expect(try await test.owner() == "c4")
            try await test.expectSound()
        }
    }

    @Test("The history of owners is kept: who had it then, as known then")
    func history() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a", by: "ann")
            try await test.check(receipt, monthly(test, asOf: -3))
            let before = try await test.betweenChanges()
            try await test.upload("a", by: "bob")
            try await test.check(receipt, monthly(test))
            let yes: [Cell] = [true, "monthly", "active", nil, "Production", "verified"]
            let no: [Cell] = [false, nil, nil, nil, nil, "none"]
            #expect(try await test.entitled("monthly", "ann") == no)
            #expect(try await test.entitled("monthly", "bob") == yes)
            #expect(try await test.entitled("monthly", "ann", at: test.at(-2)) == yes)
            #expect(try await test.entitled("monthly", "bob", at: test.at(-2)) == no)
            #expect(try await test.entitled("monthly", "ann", knownAt: before) == yes)
            try await test.expectRows(
                """
                SELECT c.name, lower_inf(o.valid) AS from_ever, upper_inf(o.valid) AS for_ever,
                       upper_inf(o.known) AS open
                FROM ledger.ownership o JOIN ledger.customer c USING (customer_id) ORDER BY ownership_id
                """, [["ann", true, true, false], ["ann", true, false, true], ["bob", false, true, true]])
        }
    }

    @Test("Keep keeps; transfer_if_lapsed waits for the end")
    func policies() async throws {
        try await withLedger(policy: .keep) { test in
            let receipt = try await test.upload("a", by: "ann")
            try await test.check(receipt, monthly(test, asOf: -3))
            try await test.upload("a", by: "bob")
            try await test.check(receipt, monthly(test, asOf: -2))
            #expect(try await test.owner() == "ann")
            var change = AppChange()
            change.ownershipPolicy = .transferIfLapsed
            try await test.ledger.apps.change(test.app.bundleID, change)
            try await test.upload("a", by: "bob")
            try await test.check(receipt, monthly(test, asOf: -1.5))
            #expect(try await test.owner() == "ann")
            try await test.upload("a", by: "bob")
            try await test.check(receipt, monthly(test).but { $0.refunded = (0, test.at(-1.2)) })
            #expect(try await test.owner() == "bob")
        }
    }

    @Test("A token beats every policy: who is named takes it, and who is not never does")
    func tokens() async throws {
        for policy in OwnershipPolicy.allCases {
            try await withLedger(policy: policy) { test in
                let receipt = try await test.upload("a", by: "ann")
                try await test.check(receipt, monthly(test, asOf: -3))
                try await test.upload("a", by: "bob")
                try await test.check(receipt, monthly(test, asOf: -2, token: "BOB"))
                #expect(try await test.owner() == "bob", "\(policy)")
                try await test.upload("a", by: "cid")
                try await test.check(receipt, monthly(test, token: "BOB"))
                #expect(try await test.owner() == "bob", "\(policy)")
                try await test.expectRows(
                    "SELECT customer, cause FROM perennial.ownership_log WHERE known_until IS NULL ORDER BY valid_from",
                    [["ann", "upload"], ["bob", "token"]])
            }
        }
    }

    @Test("An import does not take what is live; a scheduled check changes no owner")
    func importsAndChecks() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a", by: "ann")
            try await test.check(receipt, monthly(test, asOf: -3))
            try await test.upload("a", by: "bob", imported: true)
            let settled = try await test.check(receipt, monthly(test, asOf: -2))
            guard case .refused = settled.subscriptions[0].ownership["bob"] else {
                Issue.record("an import took a live subscription")
                return
            }
            let scheduled = try await test.check(receipt, monthly(test))
            #expect(scheduled.subscriptions[0].ownership == [:])
            #expect(try await test.owner() == "ann")
            try await test.upload("a", by: "bob")
            try await test.check(receipt, outage)
            #expect(try await test.owner() == "ann")
            try await test.check(receipt, monthly(test))
            #expect(
                try await test.owner() == "bob", "an upload's claim waits for an answer that vouches for the receipt")
        }
    }
}
