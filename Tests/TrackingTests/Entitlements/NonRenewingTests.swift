import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Non-renewing subscriptions end after the catalog's period")
struct NonRenewingTests {
    /// Purchases of one customer and when access ends.
    struct Life: Sendable, CustomTestStringConvertible {
        let period: String
        /// The purchases: id, instant, quantity, refund.
        let bought: [(id: String, at: String, quantity: Int, refunded: String?)]
        let ends: String
        var testDescription: String { "\(period) \(bought.map(\.at)) until \(ends)" }
    }

    static let lives = [
        Life(period: "P7D", bought: [("1", "2026-01-01T10:00:00Z", 1, nil)], ends: "2026-01-08T10:00:00Z"),
        Life(period: "P1M", bought: [("1", "2026-01-31T10:00:00Z", 1, nil)], ends: "2026-02-28T10:00:00Z"),
        Life(period: "P1M", bought: [("1", "2026-01-31T10:00:00Z", 3, nil)], ends: "2026-04-30T10:00:00Z"),
        Life(period: "P1Y", bought: [("1", "2024-02-29T23:30:00Z", 1, nil)], ends: "2025-02-28T23:30:00Z"),
        Life(
            period: "P1M", bought: [("1", "2026-01-31T10:00:00Z", 1, nil), ("2", "2026-02-10T10:00:00Z", 1, nil)],
            ends: "2026-03-28T10:00:00Z"),
        // The order of ids decides between purchases of one instant: the refund takes its own part only.
        Life(
            period: "P1M",
            bought: [
                ("2", "2026-01-05T10:00:00Z", 1, "2026-01-06T10:00:00Z"), ("1", "2026-01-05T10:00:00Z", 2, nil),
            ], ends: "2026-03-05T10:00:00Z"),
        Life(
            period: "P1M",
            bought: [
                ("1", "2026-01-31T10:00:00Z", 1, nil), ("2", "2026-02-10T10:00:00Z", 1, "2026-02-12T10:00:00Z"),
            ], ends: "2026-02-28T10:00:00Z"),
        Life(
            period: "P1M",
            bought: [
                ("1", "2026-01-31T10:00:00Z", 1, "2026-02-05T10:00:00Z"), ("2", "2026-02-10T10:00:00Z", 1, nil),
            ], ends: "2026-03-10T10:00:00Z"),
        Life(
            period: "P1M", bought: [("1", "2026-01-05T10:00:00Z", 1, "2026-01-20T10:00:00Z")],
            ends: "2026-01-20T10:00:00Z"),
        // A refund after the end changes nothing.
        Life(
            period: "P1W", bought: [("1", "2026-01-05T10:00:00Z", 1, "2026-03-01T10:00:00Z")],
            ends: "2026-01-12T10:00:00Z"),
    ]

    static func season(_ period: String) -> CatalogProduct {
        CatalogProduct(id: "season", kind: .nonRenewing, period: period, entitlements: ["shows"])
    }

    @Test("Purchases add up in the calendar, in whichever order they are seen", arguments: lives)
    func ends(_ life: Life) async throws {
        for bought in [life.bought, life.bought.reversed()] {
            try await withLedger { test in
                try await test.sell([Self.season(life.period)])
                for one in bought {
                    try await test.check(
                        try await test.upload("receipt of \(one.id)"),
                        purchase(
                            one.id, product: "season", quantity: one.quantity, at: try instant(one.at),
                            asOf: test.at(-1),
                            refundedAt: try one.refunded.map(instant)))
                }
                let end = try instant(life.ends)
                let before = try await test.entitled("shows", at: Instant(milliseconds: end.milliseconds - 1))
                #expect(before == [true, "season", "active", nil, "Production", "verified"])
                #expect(try await test.entitled("shows", at: end).first == false)
                #expect(try await test.entitled("shows").first == false)
                #expect(try await test.violations([.entitlements]) == [])
            }
        }
    }

    @Test("The duration is the catalog's when the purchase was first seen, and a later catalog changes no earlier one")
    func duration() async throws {
        try await withLedger { test in
            let season = { (id: String, days: Double) in
                purchase(id, product: "season", at: test.at(days), asOf: test.at(-0.5))
            }
            // No catalog named it, so it grants nothing; the first duration holds for it too.
            try await test.check(try await test.upload("a"), season("1", -5))
            #expect(try await test.entitled("season").first == false)
            try await test.sell([Self.season("P10D")])
            #expect(try await test.entitled("shows").first == true)
            try await test.sell([Self.season("P1D")])
            #expect(try await test.entitled("shows", at: test.at(4.9)).first == true)
            try await test.check(try await test.upload("b", by: "bob"), season("2", -2))
            #expect(try await test.entitled("shows", "bob", at: test.at(-1.1)).first == true)
            #expect(try await test.entitled("shows", "bob").first == false)
            _ = try await test.ledger.customers.renewEntitlements()
            #expect(try await test.violations([.entitlements]) == [])
            // A product that is no non-renewing subscription any more does not end.
            try await test.sell([CatalogProduct(id: "season", kind: .nonConsumable, entitlements: ["shows"])])
            #expect(try await test.entitled("shows", "bob").first == true)
        }
    }

    private func instant(_ text: String) throws -> Instant { try #require(Instant(iso8601: text)) }
}
