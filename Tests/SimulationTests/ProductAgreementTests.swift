import AppStoreSimulator
import Foundation
import JSON
import Postgres
import Server
import SQL
import Testing
import TestSupport
import Tracking

@testable import perennial

/// What reports say of each product is what happened in the pretend App Store, which runs at the speed of life here.
@Suite("Reports by product agree with the simulator", .serialized)
struct ProductAgreementTests {
    /// What became of one product.
    private struct Product: Hashable {
        /// Subscriptions that pay now, and those of them at the full price.
        var (paying, atFullPrice) = (0, 0)
        /// Subscriptions whose first charge was for it, and all charges of theirs.
        var (began, charges) = (0, 0)
    }

    @Test("Who pays now, since when and how often, for each product")
    func products() async throws {
        var options = SimulatorOptions(seed: 20_261_128)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (250, 0, 30 * 86_400)
        // Nor are there answers that leave out whether a period was introductory.
        (options.traits.legacyReceipt, options.traits.quirk, options.chances.accountDeletions) = (0, 0, 0)
        try await withTestDatabase { database, connectionString in
            try await PretendWorld.with(options, leaseSeconds: 10, connectionString: connectionString) { world in
                try await world.checkEverything()
                world.clock.stop()
                let truths = world.simulator.truth()
                let now = try #require(truths.first?.now)
                let expected = Self.products(of: truths.flatMap(\.subscriptions), at: now)
                let inFull = Self.payers(of: truths.flatMap(\.subscriptions), at: now)
                    .filter { $0.last.offer == nil }.map(\.id)
                #expect(try await payersInFull(in: database) == inFull.sorted())
                let prices = try await price(Array(expected.keys), in: database)
                #expect(expected.count > 2 && expected.values.allSatisfy { $0.paying > 0 && $0.charges > 3 })
                try await expect(expected, at: prices, in: database)
                try await world.expectNoViolations()
            }
        }
    }

    private func expect(
        _ expected: [String: Product], at prices: [String: Int64], in database: Database
    ) async throws {
        let total = expected.values.reduce(0) { $0 + $1.paying }
        let now = try await rows("mrr", ["by": "product", "from": Self.today], in: database)
        let whole = try await rows("mrr", ["from": Self.today], in: database)
        #expect(whole.reduce(0) { $0 + $1.integer("subscriptions") } == total)
        #expect(now.allSatisfy { $0["is_complete"] == .bool(false) })
        let churn = try await rows("churn", ["by": "product", "bucket": "year"], in: database)
        let cohorts = try await rows("lifetime_value", ["by": "product", "bucket": "year"], in: database)
        for (id, product) in expected {
            let paying = now.filter { $0["product_id"] == .string(id) }
            #expect(paying.reduce(0) { $0 + $1.integer("subscriptions") } == product.paying, "\(id) pays")
            let priced = paying.filter { $0["currency"] == .string("USD") }
            #expect(priced.reduce(0) { $0 + $1.integer("subscriptions") } == product.atFullPrice, "\(id) in full")
            let amount = Decimal(try #require(prices[id]) * Int64(product.atFullPrice)) / 1_000
            #expect(priced.reduce(0) { $0 + $1.decimal("mrr") } == amount, "\(id)'s revenue")
            #expect(churn.last { $0["product_id"] == .string(id) }?.integer("paying_at_end") == product.paying)
            let members = cohorts.filter { $0["product_id"] == .string(id) }
            let began = Dictionary(members.map { ("\($0["since"] ?? .null)", $0.integer("subscriptions")) }) { a, _ in a
            }
            #expect(began.values.reduce(0, +) == product.began, "\(id) began")
            #expect(members.reduce(0) { $0 + $1.integer("charges") } == product.charges, "\(id)'s charges")
        }
    }

    private static var today: String { String(Date.now.ISO8601Format().prefix(10)) }

    private static func products(of truths: [SubscriptionTruth], at now: Int64) -> [String: Product] {
        var products: [String: Product] = [:]
        for truth in truths where truth.ownership == "PURCHASED" {
            let charges = truth.periods.filter { !$0.isTrial && $0.purchase <= now }.sorted {
                $0.purchase < $1.purchase
            }
            if let first = charges.first {
                products[first.product, default: Product()].began += 1
                products[first.product, default: Product()].charges += charges.count
            }
        }
        for (_, last) in payers(of: truths, at: now) {
            products[last.product, default: Product()].paying += 1
            products[last.product, default: Product()].atFullPrice += last.offer == nil ? 1 : 0
        }
        return products
    }

    /// Who pays now, with the newest period that has begun. Grace goes on at that one; a period that was replaced or
    /// refunded does not run.
    private static func payers(of truths: [SubscriptionTruth], at now: Int64) -> [(id: String, last: PeriodTruth)] {
        truths.compactMap { truth in
            let begun = truth.periods.filter { $0.purchase <= now && $0.cancelled == nil }
            guard truth.ownership == "PURCHASED", truth.access != .none,
                let last = begun.max(by: { $0.purchase < $1.purchase }), !last.isTrial
            else { return nil }
            return (truth.originalTransactionID, last)
        }
    }

    private func payersInFull(in database: Database) async throws -> [String] {
        let rows = try await database.query(
            Statement(
                name: "payers",
                sql: """
                    SELECT original_transaction_id AS id FROM perennial.paying_as_known('infinity')
                    WHERE paying_from <= now() AND now() < paying_until AND offer IS NULL
                    """))
        return try rows.map { try $0.text("id") }.sorted()
    }

    /// Gives each product a price of its own, for a month, in USD.
    private func price(_ ids: [String], in database: Database) async throws -> [String: Int64] {
        let prices = Dictionary(uniqueKeysWithValues: ids.sorted().enumerated().map { ($1, Int64($0 + 1) * 1_000) })
        for (id, price) in prices {
            try await database.transaction {
                try $0.script(
                    """
                    INSERT INTO ledger.product (app_id, product_id, group_id, level, period, price_milliunits, currency)
                    SELECT app_id, '\(id)', 'g', \(price / 1_000), 'P1M', \(price), 'USD' FROM ledger.app;
                    SELECT ledger.record_price(app_id, '\(id)', '', tstzrange(NULL, NULL), \(price), 'USD', '2020-01-01Z')
                    FROM ledger.app
                    """)
            }
        }
        return prices
    }

    private typealias Named = [String: JSONValue]

    private func rows(_ report: String, _ given: [String: String], in database: Database) async throws -> [Named] {
        let file = try #require(Reports.all.first { $0.name == report })
        let statement = ReportStatement(file.text)
        let values = try statement.values(given, report: report)
        let listing = try await database.transaction { try Listing(of: statement, values, in: $0) }
        return listing.rows.map { Dictionary(uniqueKeysWithValues: zip(listing.columns, $0)) }
    }
}

extension [String: JSONValue] {
    /// The number in a column; 0 where there is none.
    fileprivate func integer(_ column: String) -> Int {
        if case .integer(let number) = self[column] { Int(number) } else { 0 }
    }

    fileprivate func decimal(_ column: String) -> Decimal {
        switch self[column] {
        case .integer(let number): Decimal(number)
        case .number(let text), .string(let text): Decimal(string: text) ?? 0
        case nil, .null, .bool, .array, .object: 0
        }
    }
}
