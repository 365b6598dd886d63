import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What a customer only points at belongs to the one who shows more")
struct PointerTests {
    private func pointer(_ test: TestLedger, by customer: String) async throws -> ReceiptID {
        let upload = Showing.transactionID.upload("1000", by: customer, of: test.app)
        return try #require(try await test.ledger.intake.store([upload]).first).receiptID
    }

    private func settle(_ test: TestLedger, _ receipt: ReceiptID, _ answer: Answer) async throws -> Settled {
        let settlement = Settlement(
            claim: try await test.claim(receipt), finding: .verified(answer.evidence), body: Array("{}".utf8),
            latestReceipt: nil, server: ServerRead(beginsAtStart: true, revision: "r", goesOn: false))
        return try #require(try await test.ledger.settlements.settleInFull([settlement]).settled.first)
    }

    @Test("The id of a transaction alone takes nothing from an owner, live or lapsed", arguments: [-9.0, -90])
    func owned(days: Double) async throws {
        try await withLedger { test in
            let answer = Answer(from: test.at(days), asOf: test.at(-1))
            try await test.check(try await test.upload("receipt", by: "ann"), answer)
            let pointed = try await settle(test, try await pointer(test, by: "bob"), answer)
            #expect(pointed.vouching == .pointer)
            #expect(
                pointed.subscriptions.first?.ownership[AppCustomerID("bob")]
                    == .refused("The id of a transaction alone takes nothing from an owner."))
            #expect(try await test.owner() == "ann")
        }
    }

    @Test(
        "It gets what nobody else claims, and yields under every policy, which is no transfer",
        arguments: OwnershipPolicy.allCases, [Showing.receipt, .signedTransaction])
    func yields(policy: OwnershipPolicy, to showing: Showing) async throws {
        try await withLedger(policy: policy) { test in
            let answer = Answer(from: test.at(-9), asOf: test.at(-1))
            for pointing in [Showing.transactionID, .unvouchedReceipt] {
                try await test.show(pointing, "1000", by: "eve", answer.finding)
                #expect(try await test.owner() == "eve")
            }
            let shown = try await test.show(
                showing, "shown 1000", by: "ann", answer.but { $0.asOf = test.at(-0.9) }.finding)
            #expect(shown.subscriptions.first?.ownership[AppCustomerID("ann")] == .transferred)
            #expect(try await test.owner() == "ann")
            #expect(
                try await test.text("SELECT detail::text FROM ledger.event WHERE kind = 'ownership.transferred'")
                    == #"{"from_pointer": true}"#)
            try await test.expectRows(
                "SELECT customer, cause FROM perennial.ownership_log WHERE known_until IS NULL ORDER BY valid_from",
                [["eve", "pointer"], ["ann", "upload"]])
            // Three more customers may take it over, as if nothing had been transferred.
            guard policy == .transfer else { return }
            for (place, name) in ["bob", "cid", "dan", "fay"].enumerated() {
                try await test.show(
                    .receipt, name, by: name, answer.but { $0.asOf = test.at(-0.8 + Double(place) / 100) }.finding)
            }
            #expect(try await test.owner() == "dan")
            #expect(try await test.violations() == [])
        }
    }

    @Test("It gets no delivery; who shows the purchase later gets it", arguments: OwnershipPolicy.allCases)
    func deliveries(policy: OwnershipPolicy) async throws {
        try await withLedger(policy: policy) { test in
            try await test.sellDeliverables()
            let bought = test.bought([("p", "coins"), ("t", "themes")])
            try await test.show(.transactionID, "p", by: "eve", bought)
            #expect(try await test.owners() == "p eve, t eve")
            #expect(try await test.deliveries() == [])
            #expect(try await test.violations() == [])
            try await test.show(.signedTransaction, "p", by: "ann", bought)
            #expect(try await test.owners() == "p ann, t ann")
            #expect(try await test.deliveries() == ["1 purchase due ann 100", "1 purchase due ann"])
            #expect(try await test.violations() == [])
        }
    }

    @Test("It yields also where a token gives the rest to the one who points", arguments: OwnershipPolicy.allCases)
    func ownerOfTheRest(policy: OwnershipPolicy) async throws {
        let eve = "00000000-0000-4000-8000-000000000077"
        try await withLedger(policy: policy) { test in
            try await test.sellDeliverables()
            func both(_ asOf: Double) -> Finding {
                guard case .verified(var said) = test.bought([("p", "coins"), ("t", "themes")], asOf: asOf) else {
                    return test.bought([])
                }
                said.transactions[1].appAccountToken = eve
                return .verified(said)
            }
            try await test.show(.transactionID, "p", by: eve, both(-1))
            #expect(try await test.owners() == "p \(eve), t \(eve)")
            try await test.show(.signedTransaction, "shown p", by: "ann", both(-0.9))
            #expect(try await test.owners() == "p ann, t \(eve)")
            try await test.expectRows(
                """
                SELECT customer, cause FROM perennial.ownership_log
                WHERE original_transaction_id = 'p' AND known_until IS NULL ORDER BY valid_from
                """, [[.text(eve), "pointer"], ["ann", "upload"]])
            #expect(try await test.deliveries() == ["1 purchase due \(eve)", "1 purchase due ann 100"])
            #expect(try await test.violations() == [])
        }
    }

    @Test("Who pointed at a purchase and shows it later owns it like everybody else")
    func confirmed() async throws {
        try await withLedger(policy: .keep) { test in
            try await test.sellDeliverables()
            let bought = test.bought([("p", "coins")])
            let pointed = try await test.show(.unvouchedReceipt, "receipt", by: "ann", bought)
            #expect(try await test.deliveries() == [])
            // verifyReceipt vouches for the same receipt at a later check, without another upload.
            try await test.check(pointed.receiptID, bought)
            #expect(try await test.deliveries() == ["1 purchase due ann 100"])
            try await test.show(.receipt, "other", by: "bob", bought)
            #expect(try await test.owners() == "p ann")
            try await test.expectRows(
                "SELECT customer, cause FROM perennial.ownership_log WHERE known_until IS NULL ORDER BY valid_from",
                [["ann", "pointer"], ["ann", "upload"]])
            #expect(
                try await test.text("SELECT count(*) FROM ledger.event WHERE kind = 'ownership.transferred'") == "0")
            #expect(try await test.violations() == [])
        }
    }

    @Test("A proof takes what somebody pointed at, whoever that was", arguments: ["eve", "ann"])
    func proved(by pointing: String) async throws {
        try await withLedger(policy: .keep) { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await test.show(.transactionID, "p", by: pointing, test.bought([("p", "coins")]))
            #expect(try await test.log(of: order) == "created placed")
            try await test.check(try await test.send("device", for: order), test.bought([("p", "coins")], asOf: -0.9))
            #expect(try await test.owners() == "p ann")
            #expect(try await test.log(of: order) == "created placed, paid proof")
            #expect(try await test.deliveries() == ["1 purchase due ann 100"])
            #expect(try await test.violations() == [])
        }
    }

    @Test("What somebody points at pays no order of theirs")
    func unpaid() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place(by: "eve")
            try await test.show(.transactionID, "p", by: "eve", test.bought([("p", "coins")]))
            #expect(try await test.log(of: order) == "created placed")
            try await test.show(.signedTransaction, "p", by: "eve", test.bought([("p", "coins")], asOf: -0.9))
            #expect(try await test.log(of: order) == "created placed, paid product")
            #expect(try await test.deliveries() == ["1 purchase due eve 100"])
        }
    }

    @Test("A merge and a split leave a pointer a pointer; a person's assignment does not")
    func people() async throws {
        try await withLedger(policy: .keep) { test in
            try await test.sellDeliverables()
            let (bought, said) = (test.bought([("p", "coins")]), try ManualDecision(by: "kim", because: "called"))
            try await test.show(.transactionID, "p", by: "eve", bought)
            try await test.upload("other", by: "bob")
            let merged = try await test.ledger.customers.merge(
                "eve", into: "bob", of: test.app.bundleID, deciding: said)
            #expect(merged.things == 1)
            #expect(try await test.owners() == "p bob")
            #expect(try await test.deliveries() == [])
            let split = try await test.ledger.customers.split("eve", of: test.app.bundleID, deciding: said)
            #expect(split.things == 1)
            #expect(try await test.owners() == "p eve")
            #expect(try await test.deliveries() == [])
            let given = try await test.ledger.customers.assign("p", to: "eve", of: test.app.bundleID, deciding: said)
            #expect(given == 1)
            #expect(try await test.deliveries() == ["1 purchase due eve 100"])
            try await test.show(.receipt, "receipt", by: "ann", bought)
            #expect(try await test.owners() == "p eve")
            #expect(try await test.violations() == [])
        }
    }

    @Test("Verification names a pointer that keeps a purchase from somebody who showed it")
    func verified() async throws {
        try await withLedger { test in
            let answer = Answer(from: test.at(-9), asOf: test.at(-1))
            try await test.show(.transactionID, "1000", by: "eve", answer.finding)
            try await test.show(.receipt, "receipt", by: "ann", answer.but { $0.asOf = test.at(-0.9) }.finding)
            try await test.run(
                """
                DELETE FROM ledger.ownership WHERE cause = 'upload';
                DELETE FROM ledger.ownership WHERE NOT upper_inf(valid);
                UPDATE ledger.ownership SET known = tstzrange(lower(known), NULL)
                """)
            let found = try await test.violations([.ownership])
            #expect(found.map(\.detail) == ["its owner only pointed at it, and another customer showed it later"])
            #expect(found.first?.receiptID != nil)
            try await test.check(try #require(found.first?.receiptID), answer.but { $0.asOf = test.at(-0.8) })
            #expect(try await test.violations([.ownership]) == [])
            #expect(try await test.owner() == "ann")
        }
    }

    @Test("A read of the history is remembered, and a check reads on from there")
    func history() async throws {
        try await withLedger { test in
            let receipt = try await pointer(test, by: "ann")
            let before = try await test.claim(receipt)
            #expect(before.form == .transactionID && before.transactionID == "1000" && before.historyRevision == nil)
            try await test.ledger.claims.release([before])
            _ = try await settle(test, receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            let after = try await test.claim(receipt)
            #expect(after.historyRevision == "r" && !after.isVouched)
            try await test.ledger.claims.release([after])
            let receipts = try await test.upload("other")
            try await test.check(receipts, Answer(from: test.at(-9), asOf: test.at(-1)))
            let vouched = try await test.claim(receipts)
            #expect(vouched.isVouched && vouched.transactionID == "1000" && vouched.historyRevision == nil)
        }
    }
}
