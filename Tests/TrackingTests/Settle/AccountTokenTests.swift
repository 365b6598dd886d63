import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// A customer's id as an account token: Apple takes UUIDs alone.
private let ann = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

@Suite("An account token gives what carries it to the customer whom it names")
struct AccountTokenTests {
    @Test(
        "At first sight: the customer of the order, else the customer with this id, else the newest uploader",
        arguments: OwnershipPolicy.allCases, Showing.allCases)
    func firstSight(policy: OwnershipPolicy, by showing: Showing) async throws {
        try await withLedger(policy: policy) { test in
            try await test.sellDeliverables()
            try await test.upload("other", by: ann)
            let order = try await test.place(by: "bob")
            for (id, token, owner, days) in [
                ("a", ann, ann, -2.4), ("b", ann.uppercased(), ann, -2.3), ("c", order.appAccountToken, "bob", -2.2),
                ("d", "00000000-0000-4000-8000-000000000000", "eve", -2.1),
            ] {
                try await test.show(showing, id, by: "eve", test.bought([(id, "coins")], days: days).carrying(token))
                #expect(try await test.owners().hasSuffix("\(id) \(owner)"), "\(showing)")
            }
            let isPointer = showing == .transactionID || showing == .unvouchedReceipt
            #expect(
                try await test.deliveries()
                    == ["\(ann) 100", "\(ann) 100", "bob 100"].map { "1 purchase due \($0)" }
                    + (isPointer ? [] : ["1 purchase due eve 100"]))
            #expect(try await test.log(of: order) == "created placed, paid token")
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "Of two customers whose ids are the token, the one in lower case has it, also for orders",
        arguments: [false, true])
    func spelledTwice(lowerIsFirst: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let names = lowerIsFirst ? [ann, ann.uppercased()] : [ann.uppercased(), ann]
            for name in names { try await test.upload("other of \(name)", by: name) }
            let (order, other) = (try await test.place(by: ann), try await test.place(by: ann.uppercased()))
            try await test.show(.receipt, "p", by: "eve", test.bought([("p", "coins")]).carrying(ann))
            #expect(try await test.owners() == "p \(ann)")
            #expect(try await test.log(of: order) == "created placed, paid product")
            #expect(try await test.log(of: other) == "created placed")
            #expect(try await test.violations() == [])
        }
    }

    @Test("A merged name means the customer of now; an answer names no customer but the sender")
    func merges() async throws {
        try await withLedger { test in
            try await test.upload("other", by: ann)
            _ = try await test.ledger.customers.merge(
                ann, into: "zoe", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "same"))
            let settled = try await test.show(
                .receipt, "receipt", by: "eve",
                Answer(from: test.at(-9), asOf: test.at(-1)).but { $0.token = ann }.finding)
            #expect(try await test.owner() == "zoe")
            #expect(
                settled.subscriptions.first?.ownership[AppCustomerID("eve")]
                    == .refused("Its app_account_token names another customer."))
        }
    }

    @Test(
        "A customer who appears later gets it by the first upload; what is due moves, what was acknowledged stays",
        arguments: OwnershipPolicy.allCases, [false, true])
    func later(policy: OwnershipPolicy, acknowledged: Bool) async throws {
        try await withLedger(policy: policy) { test in
            try await test.sellDeliverables()
            let bought = test.bought([("p", "coins")]).carrying(ann)
            let first = try await test.show(.receipt, "receipt of eve", by: "eve", bought).receiptID
            if acknowledged { try await test.acknowledgeAll() }
            #expect(try await test.owners() == "p eve")
            try await test.show(.signedTransaction, "p", by: ann, bought)
            #expect(try await test.owners() == "p \(ann)")
            #expect(
                try await test.deliveries()
                    == (acknowledged
                        ? ["1 purchase acknowledged eve 100"]
                        : [
                            "1 purchase claimed_by_order eve 100", "2 transfer claimed_by_order eve 100",
                            "3 purchase due \(ann) 100",
                        ]))
            // Nobody takes it back, and what is refunded is taken back from whom it was given to.
            try await test.show(.receipt, "receipt of eve", by: "eve", bought)
            #expect(try await test.owners() == "p \(ann)")
            if !acknowledged { try await test.acknowledgeAll() }
            try await test.check(
                first, purchase("p", at: test.at(-2), asOf: test.at(-0.5), refundedAt: test.at(-0.6)))
            #expect(try await test.deliveries().last == "2 refund due eve 100" || !acknowledged)
            #expect(try await test.deliveries().last == "4 refund due \(ann) 100" || acknowledged)
            #expect(try await test.violations() == [])
        }
    }

    @Test("A customer who appears by something else gets it by the next upload of anybody, unless a person decided")
    func appears() async throws {
        try await withLedger(policy: .keep) { test in
            let answer = Answer(from: test.at(-9), asOf: test.at(-1)).but { $0.token = ann }
            let receipt = try await test.show(.receipt, "receipt", by: "eve", answer.finding).receiptID
            try await test.upload("other", by: ann)
            try await test.check(receipt, answer.but { $0.asOf = test.at(-0.9) })
            #expect(try await test.owner() == "eve", "a scheduled check changes no owner")
            try await test.show(.receipt, "receipt", by: "eve", answer.but { $0.asOf = test.at(-0.8) }.finding)
            #expect(try await test.owner() == ann)
            _ = try await test.ledger.customers.assign(
                "1000", to: "bob", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "called"))
            for (place, customer) in ["bob", "eve", "cid"].enumerated() {
                try await test.show(
                    .receipt, "receipt", by: customer,
                    answer.but { $0.asOf = test.at(-0.7 + Double(place) / 100) }.finding)
                #expect(try await test.owner() == "bob")
            }
            try await test.show(.receipt, "receipt", by: ann, answer.but { $0.asOf = test.at(-0.6) }.finding)
            #expect(try await test.owner() == ann)
        }
    }

    @Test("An order loses what paid it to the customer whom the token names, and another purchase pays it")
    func orders() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place(by: "eve")
            let bought = test.bought([("p", "coins")]).carrying(ann)
            try await test.show(.receipt, "receipt of eve", by: "eve", bought)
            #expect(try await test.log(of: order) == "created placed, paid product")
            try await test.show(.receipt, "receipt of ann", by: ann, bought)
            #expect(try await test.log(of: order) == "created placed, paid product, created moved")
            #expect(try await test.violations() == [])
            try await test.acknowledgeAll()
            #expect(try await test.log(of: order) == "created placed, paid product, created moved")
            try await test.show(.receipt, "second of eve", by: "eve", test.bought([("q", "coins")]))
            #expect(try await test.log(of: order).hasSuffix("created moved, paid product"))
            try await test.acknowledgeAll()
            #expect(try await test.log(of: order).hasSuffix("paid product, delivered acknowledged"))
            #expect(try await test.violations() == [])
        }
    }

    @Test("A token that is stored counts, whether or not the answer repeats it")
    func stored() async throws {
        try await withLedger(policy: .keep) { test in
            let answer = Answer(from: test.at(-9), asOf: test.at(-1))
            try await test.show(.signedTransaction, "1000", by: "eve", answer.but { $0.token = ann }.finding)
            try await test.show(.receipt, "receipt", by: ann, answer.but { $0.asOf = test.at(-0.9) }.finding)
            #expect(try await test.owner() == ann)
        }
    }

    @Test("A customer who is merged at this moment does not get it under a name of before")
    func merging() async throws {
        try await withLedger { test in
            try await test.upload("other", by: ann)
            try await test.upload("another", by: "zoe")
            let answer = Answer(from: test.at(-9), asOf: test.at(-1)).but { $0.token = ann }
            let receipt = try await test.upload("receipt", by: "eve")
            let claim = try await test.claim(receipt)
            let settling = try await test.database.transaction { transaction in
                try transaction.script(
                    """
                    UPDATE ledger.customer SET merged_into = (SELECT z.customer_id FROM ledger.customer z WHERE z.name = 'zoe')
                    WHERE name = '\(ann)'
                    """)
                let settling = Task { try await test.settle(claim, answer.finding) }
                try transaction.waitUntilAnotherIsBlocked()
                return settling
            }
            _ = try await settling.value
            #expect(try await test.owner() == "zoe")
        }
    }
}
