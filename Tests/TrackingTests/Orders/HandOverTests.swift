import Foundation
import Postgres
import SQL
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What is still to be given moves with its purchase, and what was given does not")
struct HandOverTests {
    private func assign(_ id: OriginalTransactionID, to customer: String, in test: TestLedger) async throws {
        _ = try await test.ledger.customers.assign(
            id, to: customer, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "called"))
    }

    @Test("What a person assigns pays the new owner's order while it is due; a merge and a split decide anew, too")
    func byHand() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (mine, theirs) = (try await test.place(), try await test.place(by: "bob"))
            let customers = test.ledger.customers
            let decision = try ManualDecision(by: "kim", because: "called")
            try await test.buys("p", by: "bob")
            #expect(try await test.log(of: theirs) == "created placed, paid product")
            _ = try await customers.assign("p", to: "ann", of: test.app.bundleID, deciding: decision)
            #expect(try await test.log(of: mine) == "created placed, paid product")
            #expect(try await test.log(of: theirs) == "created placed, paid product, created moved")
            #expect(
                try await test.deliveries() == [
                    "1 purchase claimed_by_order bob 100", "2 transfer claimed_by_order bob 100",
                    "3 purchase due ann 100",
                ])
            #expect(try await test.violations() == [])
            // What was given to a customer stays theirs.
            try await test.acknowledgeAll()
            _ = try await customers.assign("p", to: "eve", of: test.app.bundleID, deciding: decision)
            #expect(try await test.deliveries().last == "3 purchase acknowledged ann 100")
            try await test.buys("q", by: "zoe", days: -1.9)
            _ = try await customers.merge("zoe", into: "bob", of: test.app.bundleID, deciding: decision)
            #expect(try await test.log(of: theirs).hasSuffix(", created moved, paid product"))
            #expect(try await test.deliveries().last == "1 purchase due bob 100")
            #expect(try await test.violations() == [])
            _ = try await customers.split("zoe", of: test.app.bundleID, deciding: decision)
            #expect(try await test.log(of: theirs).hasSuffix(", paid product, created moved"))
            #expect(try await test.deliveries().last == "1 purchase due zoe 100")
            #expect(try await test.violations() == [])
        }
    }

    /// What is said of an owner, by the cause that the log has.
    private static let causes: [(OwnershipCause, String)] = [
        (.upload, "the first to upload"), (.imported, "an import"), (.token, "an order of theirs, or a name"),
        (.proof, "the proof of their order"), (.merge, "a name that is theirs"), (.split, "was undone"),
        (.assignment, "a person assigned it"), (.pointer, "only pointed at it"),
    ]

    @Test("What explains an owner says the cause that the log has", arguments: [true, false])
    func causes(isPurchase: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            if isPurchase {
                try await test.buys("p")
            } else {
                try await test.check(
                    try await test.upload("s"), .verified(Answer(from: test.at(-9), asOf: test.at(-1)).evidence))
            }
            for (cause, words) in Self.causes {
                try await test.run("UPDATE ledger.ownership SET cause = '\(cause.rawValue)'")
                let reasons = try await test.ledger.customers.reasons(
                    app: test.app.bundleID, customer: "ann",
                    reading: EvidenceReader(answer: { _ in nil }, notification: { _ in nil }))
                let owners = reasons.purchases.map(\.ownership) + reasons.subscriptions.map(\.ownership)
                let said = try #require(owners.first).sentence(for: "ann", accountToken: nil)
                #expect(said.contains(words), "\(cause): \(said)")
            }
            #expect(Set(Self.causes.map(\.0)) == Set(OwnershipCause.allCases))
        }
    }

    @Test("What explains an owner tells a pointer before from a transfer, and the rest of a receipt from an upload")
    func lesserCauses() async throws {
        try await withLedger { test in
            func said(of customer: String) async throws -> String {
                let reasons = try await test.ledger.customers.reasons(
                    app: test.app.bundleID, customer: customer,
                    reading: EvidenceReader(answer: { _ in nil }, notification: { _ in nil }))
                return reasons.purchases.map { $0.ownership.sentence(for: customer, accountToken: nil) }
                    .joined(separator: " ")
            }
            try await test.sellDeliverables()
            try await test.buys("p")
            #expect(try await said(of: "ann").contains("the first to upload a receipt that holds it"))
            try await test.run("UPDATE ledger.event SET detail = detail || '{\"from_pointer\": true}'")
            #expect(try await said(of: "ann").contains("another customer had only pointed at it"))
            try await test.run("UPDATE ledger.event SET detail = detail - 'from_pointer'; DELETE FROM ledger.upload")
            #expect(try await said(of: "ann").contains("what else is in the receipt that holds it"))
        }
    }

    @Test("What is to be taken back is taken from whom it was given to, whoever owns it now", arguments: [true, false])
    func takenBack(byToken: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", by: "bob")
            try await test.acknowledgeAll()
            try await test.buys("p", by: "bob", asOf: -0.9, refunded: -0.95)
            let order = try await test.place()
            let lines = ["1 purchase acknowledged bob 100", "2 refund due bob 100"]
            #expect(try await test.deliveries() == lines)
            if byToken {
                let answer = purchase("p", at: test.at(-2), asOf: test.at(-0.8), refundedAt: test.at(-0.95))
                try await test.check(try await test.upload("of ann"), answer.carrying(order.appAccountToken))
            } else {
                try await assign("p", to: "ann", in: test)
            }
            #expect(try await test.owners() == "p ann")
            #expect(try await test.deliveries() == lines)
            #expect(try await test.log(of: order) == "created placed")
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "A transfer by the app's policy moves what is due, except for an order of the former owner",
        arguments: [true, false])
    func transferred(isOrdered: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let theirs = isOrdered ? try await test.place("themes", by: "bob") : nil
            let mine = try await test.place("themes")
            try await test.buys("t", "themes", by: "bob")
            try await test.check(try await test.upload("of ann"), test.bought([("t", "themes")], asOf: -0.9))
            #expect(try await test.owners() == "t ann")
            if let theirs {
                #expect(try await test.log(of: theirs) == "created placed, paid product")
                #expect(try await test.log(of: mine) == "created placed, delivered already_owned")
                #expect(try await test.deliveries() == ["1 purchase due bob"])
                while try await test.text("SELECT count(*) FROM ledger.due_delivery") != "0" {
                    try await test.acknowledgeAll()
                }
                #expect(
                    try await test.deliveries() == [
                        "1 purchase acknowledged bob", "2 transfer acknowledged bob", "3 transfer acknowledged ann",
                    ])
                #expect(
                    try await test.log(of: theirs)
                        == "created placed, paid product, delivered acknowledged, refunded acknowledged")
            } else {
                #expect(try await test.log(of: mine) == "created placed, paid product")
                #expect(try await test.deliveries().last == "3 purchase due ann")
            }
            #expect(try await test.violations() == [])
        }
    }

    @Test("An order that kept what the policy transferred is unpaid where a token gives that to a third customer")
    func transferredTwice() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (order, named) = (try await test.place("themes", by: "bob"), "3f2504e0-4f89-41d3-9a0c-0305e82c3301")
            try await test.buys("t", "themes", by: "bob")
            try await test.check(try await test.upload("of ann"), test.bought([("t", "themes")], asOf: -0.9))
            #expect(try await test.log(of: order) == "created placed, paid product")
            try await test.check(
                try await test.upload("of the named one", by: named),
                test.bought([("t", "themes")], asOf: -0.8).carrying(named))
            #expect(try await test.owners() == "t \(named)")
            #expect(try await test.log(of: order) == "created placed, paid product, created moved")
            #expect(try await test.deliveries().last == "3 purchase due \(named)")
            #expect(try await test.violations() == [])
        }
    }

    @Test("What was due and moved away was not taken back, however often it comes and goes")
    func toAndFro() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (mine, theirs) = (try await test.place(), try await test.place(by: "bob"))
            try await test.buys("p", by: "eve")
            for customer in ["ann", "bob", "ann"] { try await assign("p", to: customer, in: test) }
            #expect(try await test.log(of: mine).hasSuffix("paid product, created moved, paid product"))
            #expect(try await test.log(of: theirs) == "created placed, paid product, created moved")
            #expect(try await test.violations() == [])
            try await test.merge("ann", into: "bob")
            let states = try await test.rows("SELECT state FROM ledger.purchase_order ORDER BY state")
            #expect(states == ["created", "paid"])
            try await test.run("UPDATE ledger.purchase_order SET state = 'refunded' WHERE state = 'paid'")
            let details = try await test.violations().map(\.detail)
            #expect(
                details.count == 1 && details[0].hasSuffix("is refunded, although its settled deliveries make it paid"))
            try await test.run("UPDATE ledger.purchase_order SET state = 'paid' WHERE state = 'refunded'")
            try await test.acknowledgeAll()
            #expect(
                try await test.rows("SELECT state FROM ledger.purchase_order ORDER BY state") == [
                    "created", "delivered",
                ])
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "A period pays the order of a new owner while it is due, and never after it was given",
        arguments: [true, false])
    func periods(isGiven: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place("monthly", days: -10)
            let answer = Answer(from: test.at(-9), asOf: test.at(-1))
            try await test.check(try await test.upload("a", by: "bob"), answer)
            if isGiven { try await test.acknowledgeAll() }
            let receipt = try await test.send("b", for: order, by: "ann")
            try await test.check(receipt, answer.but { $0.asOf = test.at(-0.9) })
            #expect(try await test.owner() == "ann")
            let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
            #expect(read.state == (isGiven ? .created : .paid) && read.deliveryIDs.count == (isGiven ? 0 : 1))
            let contents = try await test.ledger.intake.purchases(in: receipt, for: "ann")
            if isGiven { #expect(contents.fit(for: read) == .refused) }
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "Orders that an earlier version paid with nothing are named, and the next decision mends them",
        arguments: [true, false])
    func paidWithNothing(isGiven: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            try await test.buys("p", by: "bob")
            if isGiven {
                try await test.acknowledgeAll()
            } else {
                let due = try await test.ledger.deliveries.read(
                    of: test.app.bundleID, state: .due, after: 0, limit: 1)
                _ = try await test.ledger.acting(as: .user("kim")).deliveries.skip(
                    try #require(due.deliveries.first).id, of: test.app.bundleID, because: "a mistake")
            }
            try await test.run(
                """
                UPDATE ledger.ownership SET customer_id = (SELECT customer_id FROM ledger.customer WHERE name = 'ann');
                UPDATE ledger.purchase_order
                SET state = 'paid', cause = 'product', paid_at = now(), environment = 'Production', transaction_id = 'p',
                    purchase_id = (SELECT purchase_id FROM ledger.purchase)
                """)
            let doubt =
                isGiven
                ? "is paid by what is another customer's"
                : "is paid and has no delivery, although the catalog delivers what pays it"
            #expect(try await test.violations([.orders]).map(\.detail) == ["order \(order.id) \(doubt)"])
            try await test.check(
                try await test.send("of ann", for: order, by: "ann"), test.bought([("p", "coins")], asOf: -0.9))
            let log = try await test.log(of: order)
            #expect(log.hasSuffix(isGiven ? ", created moved" : ", paid product, paid order"), "\(log)")
            #expect(
                try await test.deliveries().last
                    == (isGiven ? "1 purchase acknowledged bob 100" : "3 purchase due ann 100"))
            #expect(try await test.violations([.orders]) == [])
        }
    }

    @Test("Where the process ends before it decides what pays a new order, the repetition of the request does")
    func repeated() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", days: -1.0 / 1_440, asOf: -0.5 / 1_440)
            let sealed = try test.sealed
            let seal = try #require(sealed.seal)
            let asked = [try AskedOrder(orderRequest(), of: test.app.bundleID, requestKey: "k", seal: seal)]
            let rows = try await test.ledger.write(
                Queries.placeOrders, asked.parameters + [.int8(86_400_000), .int4(20), .int8(600_000)])
            #expect(try rows.map { try $0.bool("may_be_paid") } == [true])
            let placed = try await sealed.orders.place(orderRequest(), of: test.app.bundleID, requestKey: "k")
            #expect(!placed.isNew && placed.id == asked[0].id && placed.state == .paid)
            #expect(try await test.violations() == [])
        }
    }
}
