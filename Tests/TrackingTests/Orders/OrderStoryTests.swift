import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// Three names whose purchases go to and fro between them while their service carries out what is due. The order of the
/// steps is random, and after each of them nothing may be amiss.
@Suite("Whatever becomes of customers and their purchases, orders and deliveries agree")
struct OrderStoryTests {
    private static let names = ["ann", "bob", "eve"]
    private static let products: [ProductID] = ["coins", "themes"]
    private static let decision = try? ManualDecision(by: "kim", because: "a test")

    @Test(
        "A merge makes what another name was given part of the order; a split takes it out", arguments: [true, false])
    func mergedAfterTransfer(isGiven: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place("themes")
            try await test.buys("t", "themes")
            try await test.acknowledgeAll()
            try await test.buys("t", "themes", by: "bob", asOf: -0.9)
            try await test.acknowledgeAll()
            #expect(
                try await test.deliveries() == [
                    "1 purchase acknowledged ann", "2 transfer acknowledged ann", "3 transfer due bob",
                ])
            #expect(try await test.log(of: order).hasSuffix("refunded acknowledged"))
            if isGiven { try await test.acknowledgeAll() }
            #expect(try await test.violations() == [])
            try await test.merge("bob", into: "ann")
            #expect(try await test.violations() == [])
            if !isGiven { try await test.acknowledgeAll() }
            #expect(try await test.log(of: order).hasSuffix("refunded acknowledged, delivered acknowledged"))
            let decision = try #require(Self.decision)
            _ = try await test.ledger.customers.split("bob", of: test.app.bundleID, deciding: decision)
            #expect(try await test.violations() == [])
        }
    }

    @Test(
        "Purchases are restored, assigned, refunded and given while their names are merged and split", arguments: 1...10
    )
    func lives(seed: UInt64) async throws {
        var random = Seeded(seed: seed)
        print(random)
        try await withLedger { test in
            try await test.sellDeliverables()
            var (bought, steps): ([(id: String, product: ProductID, refunded: Double?)], [String]) = ([], [])
            for step in 0..<16 {
                let asOf = -1 + Double(step) * 0.01
                let name = Self.names.randomElement(using: &random) ?? ""
                let other = Self.names.randomElement(using: &random) ?? ""
                switch Int.random(in: 0..<10, using: &random) {
                case 0, 1:
                    let product = Self.products.randomElement(using: &random) ?? "coins"
                    steps.append("order of \(product) by \(name)")
                    _ = try await test.place(product, by: name)
                case 2:
                    let product = Self.products.randomElement(using: &random) ?? "coins"
                    bought.append(("p\(step)", product, nil))
                    steps.append("p\(step) bought by \(name)")
                    try await test.buys(
                        "p\(step)", product, by: name, days: -2 + Double(step) * 0.01, asOf: asOf)
                case 3, 4, 5:
                    guard let place = bought.indices.randomElement(using: &random) else { continue }
                    if Int.random(in: 0..<4, using: &random) == 0 {
                        bought[place].refunded = bought[place].refunded == nil ? asOf - 0.005 : nil
                    }
                    let one = bought[place]
                    steps.append("\(one.id) sent by \(name), refunded: \(one.refunded != nil)")
                    let days = -2 + (Double(one.id.dropFirst()) ?? 0) * 0.01
                    try await test.buys(
                        one.id, one.product, by: name, days: days, asOf: asOf, refunded: one.refunded)
                case 6:
                    guard let one = bought.randomElement(using: &random) else { continue }
                    steps.append("\(one.id) assigned to \(name)")
                    _ = try await test.ledger.customers.assign(
                        OriginalTransactionID(one.id), to: name, of: test.app.bundleID,
                        deciding: try #require(Self.decision))
                case 7:
                    steps.append("\(name) merged into \(other)")
                    try await attempt { try await test.merge(name, into: other) }
                case 8:
                    steps.append("\(name) split")
                    try await attempt {
                        _ = try await test.ledger.customers.split(
                            name, of: test.app.bundleID, deciding: try #require(Self.decision))
                    }
                default:
                    steps.append("all given")
                    let due = try await test.ledger.deliveries.read(
                        of: test.app.bundleID, state: .due, after: 0, limit: 100)
                    _ = try await test.ledger.deliveries.acknowledge(due.deliveries.map(\.id), of: test.app.bundleID)
                }
                let found = try await test.violations()
                #expect(found == [], "\(random): \(steps.joined(separator: "; "))")
                if !found.isEmpty { return }
            }
        }
    }

    /// Does what may be refused, as a merge of a name with itself.
    private func attempt(_ change: () async throws -> Void) async throws {
        do {
            try await change()
        } catch let error as LedgerError where [.notFound, .invalid, .exists].contains(error.kind) {
            // Nothing was changed.
        }
    }
}
