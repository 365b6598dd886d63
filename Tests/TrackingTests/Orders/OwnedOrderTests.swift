import TestSupport
import Testing

@testable import Subscriptions
@testable import Tracking

/// What happens to one customer's themes, which are kept for good.
private enum Step: String, CaseIterable {
    /// The customer has them in the sandbox.
    case inSandbox
    /// A family member shares them.
    case shared
    /// The customer bought them long ago.
    case owned
    /// Apple takes those back.
    case refunded
    /// An order is placed.
    case ordered
    /// They are bought for the order, and the receipt is sent for it.
    case bought

    /// The purchase that it is about.
    var purchase: Step { self == .refunded ? .owned : self }

    /// When that was bought, in days from now. Two of one instant would be possible duplicates.
    var days: Double {
        switch purchase {
        case .inSandbox: -22
        case .shared: -25
        case .bought: -0.9
        case .owned, .refunded, .ordered: -20
        }
    }
}

/// Who sends what is bought for an order.
private enum Way: String, CaseIterable { case proof, order, transaction }

@Suite("An order for what is owned already")
struct OwnedOrderTests {
    private func answer(_ step: Step, of customer: String, in test: TestLedger) -> Finding {
        let asOf = test.at(step == .refunded ? -0.2 : -0.3)
        var row = TransactionRow(
            path: "latest_receipt_info[0]", source: .latestReceiptInfo, asOf: asOf,
            transactionID: TransactionID("\(customer) \(step.purchase)"),
            originalTransactionID: OriginalTransactionID("\(customer) \(step.purchase)"), productID: "themes",
            purchasedAt: test.at(step.days), cancelledAt: step == .refunded ? test.at(-1.5) : nil)
        row.ownership = step == .shared ? .familyShared : .purchased
        return .verified(
            Evidence(
                environment: step == .inSandbox ? .sandbox : .production, bundleID: "com.example.app", asOf: asOf,
                transactions: [row]))
    }

    /// Takes steps by a customer of its own; returns the order and the receipt that was sent for it.
    private func take(
        _ steps: [Step], by customer: String, _ way: Way = .proof, in test: TestLedger
    ) async throws -> (order: PlacedOrder, sent: ReceiptID?) {
        var order: PlacedOrder?
        var sent: ReceiptID?
        for step in steps {
            switch step {
            case .ordered: order = try await test.place("themes", by: customer, days: -1)
            case .bought:
                let name = "\(customer) bought"
                sent = try await test.send(
                    name, for: try #require(order), by: way == .proof ? nil : customer,
                    naming: way == .transaction ? TransactionID(name) : nil)
                try await test.check(try #require(sent), answer(step, of: customer, in: test))
            case .inSandbox, .shared, .owned, .refunded:
                let receipt = try await test.upload("\(customer) \(step.purchase)", by: customer)
                try await test.check(receipt, answer(step, of: customer, in: test))
            }
        }
        return (try #require(order), sent)
    }

    @Test(
        "What a family member shares and what is in the sandbox keeps no order from its payment",
        arguments: Way.allCases)
    fileprivate func notOwned(way: Way) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for step in [Step.inSandbox, .shared] {
                for steps in [[step, .ordered], [.ordered, step]] {
                    let name = "\(step) \(steps[0])"
                    let (order, _) = try await take(steps, by: name, in: test)
                    #expect(try await test.log(of: order) == "created placed", "\(name)")
                    guard step == .shared else { continue }
                    let receipt = try await test.send("\(name) shared", for: order)
                    try await test.check(receipt, answer(step, of: name, in: test))
                    let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
                    let contents = try await test.ledger.intake.purchases(in: receipt, for: name)
                    #expect(contents.fit(for: read) == .nothing && read.state == .created, "\(name)")
                }
                let name = "\(step) of \(way)"
                let (order, receipt) = try await take([step, .ordered, .bought], by: name, way, in: test)
                #expect(try await test.log(of: order) == "created placed, paid \(way)")
                let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
                #expect(read.deliveryIDs.count == 1 && read.transactionID == "\(name) bought")
                let contents = try await test.ledger.intake.purchases(in: try #require(receipt), for: name)
                #expect(contents.only(of: read).finishable == ["\(name) bought"])
            }
            #expect(try await test.violations() == [])
        }
    }

    @Test("What is owned in the sandbox makes the order for which its receipt is sent need no payment")
    func sandbox() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (order, _) = try await take([.inSandbox, .ordered], by: "ann", in: test)
            let receipt = try await test.send("sandbox", for: order)
            try await test.check(receipt, answer(.inSandbox, of: "ann", in: test))
            #expect(try await test.log(of: order) == "created placed, delivered already_owned")
            let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
            let contents = try await test.ledger.intake.purchases(in: receipt, for: "ann")
            #expect(contents.only(of: read).finishable == ["ann inSandbox"])
        }
    }

    @Test("What is bought for an order of what was owned already pays it, whoever sends it", arguments: Way.allCases)
    fileprivate func boughtAgain(way: Way) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let steps: [Step] = [.owned, .ordered, .refunded, .bought]
            let (order, receipt) = try await take(steps, by: "ann", way, in: test)
            #expect(try await test.log(of: order) == "delivered already_owned, paid \(way)")
            let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
            #expect(read.state == .paid && read.deliveryIDs.count == 1)
            let contents = try await test.ledger.intake.purchases(in: try #require(receipt), for: "ann")
            #expect(contents.only(of: read).finishable == ["ann bought"])
            while try await test.text("SELECT count(*) FROM ledger.due_delivery") != "0" {
                try await test.acknowledgeAll()
            }
            #expect(try await test.log(of: order).hasSuffix(", delivered acknowledged"))
            #expect(try await test.violations() == [])
        }
    }

    @Test("A payment that moves to another order leaves the first one as it was")
    func moved() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (order, _) = try await take([.owned, .ordered, .bought], by: "ann", .order, in: test)
            #expect(try await test.log(of: order) == "delivered already_owned, paid order")
            let other = try await test.place("themes", days: -0.95)
            try await test.check(
                try await test.send("again", for: other), answer(.bought, of: "ann", in: test))
            #expect(try await test.log(of: other) == "delivered already_owned, paid proof")
            #expect(
                try await test.log(of: order) == "delivered already_owned, paid order, delivered already_owned")
            #expect(try await test.violations() == [])
        }
    }

    @Test("In every order of what happens, what is bought for an order pays it and is given")
    func arrivals() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let all = Step.allCases.permutations.filter { steps in
                func comes(_ one: Step, before other: Step) -> Bool {
                    steps.firstIndex(of: one) ?? 0 < steps.firstIndex(of: other) ?? 0
                }
                return comes(.owned, before: .refunded) && comes(.ordered, before: .bought)
            }
            #expect(all.count == 180)
            // Enough for each pair of steps in both orders.
            for (number, steps) in all.enumerated() where number % 7 == 0 {
                let name = "\(number)"
                let isOwned =
                    steps.firstIndex(of: .owned) ?? 0 < steps.firstIndex(of: .ordered) ?? 0
                    && steps.firstIndex(of: .ordered) ?? 0 < steps.firstIndex(of: .refunded) ?? 0
                let (order, _) = try await take(steps, by: name, in: test)
                let log = try await test.log(of: order)
                #expect(log.hasSuffix(", paid proof"), "\(steps): \(log)")
                #expect(log.hasPrefix(isOwned ? "delivered already_owned" : "created placed"), "\(steps): \(log)")
                let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
                #expect(read.deliveryIDs.count == 1 && read.transactionID == "\(name) bought", "\(steps)")
            }
            #expect(try await test.violations() == [])
        }
    }
}

extension Array {
    /// Every order of the elements.
    fileprivate var permutations: [[Element]] {
        guard count > 1 else { return [self] }
        return indices.flatMap { index in
            var others = self
            let first = others.remove(at: index)
            return others.permutations.map { [first] + $0 }
        }
    }
}
