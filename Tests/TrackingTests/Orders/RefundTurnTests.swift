import Postgres
import SQL
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A refund takes back the part of the price that an answer shows, from the customer who has it")
struct RefundTurnTests {
    private static let history = "history[0].signedTransactions[0]"
    private static let notified = "notification.signedTransactionInfo"

    /// What an answer shows of coins, or a notification's text states: refunded as a part of the price, for a reason.
    private func partly(
        _ test: TestLedger, asOf: Double, refunded: Double?, _ share: Int? = nil, reason: String = "1",
        path: String = history, by customer: String = "ann"
    ) async throws {
        guard
            case .verified(var evidence) = purchase(
                "p", at: test.at(-2), asOf: test.at(asOf), refundedAt: refunded.map(test.at))
        else { return }
        evidence.transactions[0].path = path
        evidence.transactions[0].source = .signedText
        evidence.transactions[0].revocationPercentage = share
        evidence.transactions[0].cancellationReason = refunded.map { _ in reason }
        try await test.check(try await test.upload("receipt of p", by: customer), .verified(evidence))
    }

    /// Acknowledges what is due; returns whether anything was.
    @discardableResult
    private func acknowledge(_ test: TestLedger) async throws -> Bool {
        guard try await test.text("SELECT count(*) FROM ledger.due_delivery") != "0" else { return false }
        try await test.acknowledgeAll()
        return true
    }

    private func acknowledgeRest(_ test: TestLedger) async throws { while try await acknowledge(test) {} }

    private static func taken(_ share: Int?) -> Int {
        share.map { max(1, Int((Double($0) / 1_000).rounded())) } ?? 100
    }

    @Test(
        "What a refund leaves is given where the refund is seen first, too, and where a notification stated it before",
        arguments: [nil, 1, 50_000, 99_000, 99_999, 100_000], [true, false])
    func partAtFirstSight(share: Int?, wasNotified: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            if wasNotified {
                try await partly(test, asOf: -0.92, refunded: -0.95, share, path: Self.notified)
                #expect(try await test.deliveries() == [])
                #expect(try await test.violations() == [])
            }
            try await partly(test, asOf: -0.9, refunded: -0.95, share)
            let taken = Self.taken(share)
            let turns = taken == 100 ? [] : ["1 purchase", "2 refund"]
            for (place, turn) in turns.enumerated() {
                #expect(try await test.deliveries().last == "\(turn) due ann \(place == 0 ? 100 : taken)")
                #expect(try await test.violations() == [])
                try await test.acknowledgeAll()
            }
            #expect(try await test.deliveries().count == turns.count)
            #expect(try await test.violations() == [])
        }
    }

    @Test("A turn stays as it was stored; where answers show another part then, it is given back and taken anew")
    func parts() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            try await test.acknowledgeAll()
            var lines = ["1 purchase acknowledged ann 100"]
            // What a notification alone states is money, and takes all back.
            try await partly(test, asOf: -0.9, refunded: -0.95, 30_000, path: Self.notified)
            #expect(try await test.deliveries() == lines + ["2 refund due ann 100"])
            for (step, share) in [30_000, 100_000, nil, 50_000].enumerated() {
                try await partly(test, asOf: -0.89 + 0.01 * Double(step), refunded: -0.95, share)
                #expect(try await test.deliveries() == lines + ["2 refund due ann 100"])
                #expect(try await test.violations() == [])
            }
            // A later notification of the same share shows nothing and hides nothing.
            try await partly(test, asOf: -0.85, refunded: -0.95, 50_000, path: Self.notified)
            try await test.acknowledgeAll()
            lines += ["2 refund acknowledged ann 100"]
            #expect(try await test.deliveries() == lines + ["3 refund_reversed due ann 100"])
            try await acknowledgeRest(test)
            lines += ["3 refund_reversed acknowledged ann 100", "4 refund acknowledged ann 50"]
            #expect(try await test.deliveries() == lines)
            try await partly(test, asOf: -0.83, refunded: -0.95, 70_000)
            try await acknowledgeRest(test)
            lines += ["5 refund_reversed acknowledged ann 50", "6 refund acknowledged ann 70"]
            #expect(try await test.deliveries() == lines)
            // Another refund is a part of what was given first, and its date has no share of the one before.
            for asOf in [-0.7, -0.6] { try await partly(test, asOf: asOf, refunded: nil) }
            try await partly(test, asOf: -0.5, refunded: -0.55)
            try await acknowledgeRest(test)
            lines += ["7 refund_reversed acknowledged ann 70", "8 refund acknowledged ann 100"]
            #expect(try await test.deliveries() == lines)
            #expect(try await test.violations() == [])
            try await test.run("UPDATE ledger.delivery SET units = 80 WHERE turn = 6")
            let found = try await test.violations([.deliveries])
            #expect(found.contains { $0.detail.hasSuffix("takes more of its customer than the turns before gave") })
        }
    }

    @Test(
        "What gives a part back stays with the customer who has the rest, also where the owner is another one by then",
        arguments: [true, false])
    func restStays(byToken: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            try await test.acknowledgeAll()
            try await partly(test, asOf: -0.9, refunded: -0.95, 20_000)
            try await test.acknowledgeAll()
            for asOf in [-0.85, -0.8] { try await partly(test, asOf: asOf, refunded: nil) }
            let order = try await test.place(by: "bob")
            if byToken {
                let answer = purchase("p", at: test.at(-2), asOf: test.at(-0.7))
                try await test.check(try await test.upload("of bob", by: "bob"), answer.carrying(order.appAccountToken))
            } else {
                try await assign(to: "bob", in: test)
            }
            #expect(try await test.owners() == "p bob")
            #expect(try await test.deliveries().last == "3 refund_reversed due ann 20")
            #expect(try await test.log(of: order) == "created placed")
            try await partly(test, asOf: -0.6, refunded: -0.65, 100_000)
            try await acknowledgeRest(test)
            #expect(try await test.deliveries().last == "4 refund acknowledged ann 100")
            #expect(try await test.log(of: order) == "created placed")
            #expect(try await test.violations() == [])
        }
    }

    private func assign(to customer: String, in test: TestLedger) async throws {
        _ = try await test.ledger.customers.assign(
            "p", to: customer, of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "called"))
    }

    /// What each customer has of what was acknowledged.
    private static let balances = """
        SELECT sum(CASE d.turn % 2 WHEN 1 THEN d.units ELSE -d.units END) AS units
        FROM ledger.delivery_now d WHERE d.state = 'acknowledged' GROUP BY d.customer_id
        """

    @Test(
        "However refunds, shares and owners change: turns stay as stored, no customer gives back more than it got, all is right",
        arguments: 0..<12 as Range<UInt64>)
    func randomRefunds(seed: UInt64) async throws {
        var random = Seeded(seed: seed)
        try await withLedger { test in
            try await test.sellDeliverables()
            var (asOf, refund, shown) = (-1.9, nil as Double?, nil as Int?)
            var units: [Substring: Substring] = [:]
            try await partly(test, asOf: asOf, refunded: nil)
            for step in 0..<14 {
                asOf += 0.02
                switch Int.random(in: 0..<8, using: &random) {
                case 0, 1:
                    if refund == nil { (refund, shown) = (asOf - 0.005, nil) }
                    let share = [nil, 1, 20_000, 55_555, 99_999, 100_000].randomElement(using: &random) ?? nil
                    shown = share ?? shown
                    try await partly(test, asOf: asOf, refunded: refund, share)
                case 2:
                    if refund == nil { (refund, shown) = (asOf - 0.005, nil) }
                    try await partly(test, asOf: asOf, refunded: refund, 35_000, path: Self.notified)
                case 3:
                    (refund, shown) = (nil, nil)
                    for again in [asOf, asOf + 0.01] { try await partly(test, asOf: again, refunded: nil) }
                case 4, 5: try await acknowledge(test)
                default: try await assign(to: ["ann", "bob", "eve"].randomElement(using: &random) ?? "ann", in: test)
                }
                for row in try await test.rows("SELECT delivery_id, units FROM ledger.delivery") {
                    let turn = row.split(separator: " ")
                    #expect(units.updateValue(turn[1], forKey: turn[0]) ?? turn[1] == turn[1], "step \(step)")
                }
                #expect(try await test.violations() == [], "step \(step)")
            }
            try await partly(test, asOf: asOf + 0.02, refunded: refund, shown)
            try await partly(test, asOf: asOf + 0.04, refunded: refund, shown)
            try await acknowledgeRest(test)
            let held = try await test.rows(Self.balances).compactMap { Int($0) }
            let lines = "\(random): \(try await test.deliveries())"
            #expect(held.allSatisfy { $0 >= 0 }, "\(lines)")
            #expect(held.reduce(0, +) == (refund == nil ? 100 : 100 - Self.taken(shown)), "\(lines)")
            #expect(try await test.violations() == [])
        }
    }
}
