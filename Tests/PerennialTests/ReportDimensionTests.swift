import Foundation
import Postgres
import SQL
import Server
import TestSupport
import Testing

@testable import perennial

/// The history with more prices and more returns in it. The tests only read.
private let history: OncePerSuite<Database> = OncePerSuite { lend in
    try await ReportFigureTests.withHistory { database in
        for name in ["mrr_movement-prices", "churn-imported", "trial_cohorts-refunded"] {
            let file = ReportFigureTests.folder.appending(path: "\(name).sql")
            let more = try String(contentsOf: file, encoding: .utf8)
            try await database.transaction { try $0.script(more) }
        }
        try await lend(database)
    }
}

@Suite("A report by product adds up to the total", history) struct ReportDimensionTests {
    /// What identifies a row apart from its product, and the figures that add up.
    static let figures: [String: (keys: [String], sums: [String])] = [
        "mrr": (["day", "bundle_id", "currency"], ["subscriptions", "mrr"]),
        "mrr_movement": (
            ["day", "bundle_id", "currency"],
            [
                "movements", "new", "reactivation", "first_full_price", "expansion", "contraction", "currency_change",
                "product_change", "churn",
            ]
        ),
        "mrr_churn": (
            ["since", "bundle_id", "currency"],
            [
                "movements", "new", "reactivation", "first_full_price", "expansion", "contraction", "currency_change",
                "product_change", "churn", "voluntary", "billing", "refund",
            ]
        ),
        "churn": (
            ["since", "bundle_id"],
            [
                "paying_at_start", "new", "returned", "recovered", "switched", "churned", "voluntary", "billing",
                "refund", "other", "paying_at_end",
            ]
        ),
        "retention": (["since", "bundle_id", "month"], ["reached", "retained"]),
        "lifetime_value": (["since", "bundle_id", "currency"], ["charges", "net", "proceeds"]),
    ]

    private func listing(_ report: String, _ given: [String: String], in database: Database) async throws -> Listing {
        let file = try #require(Reports.all.first { $0.name == report })
        let statement = ReportStatement(file.text)
        let values = try statement.values(given, report: report)
        return try await database.transaction { try Listing(of: statement, values, in: $0) }
    }

    /// The sums of the figures by key, without rows whose figures are all 0.
    private func sums(_ listing: Listing, of report: String) throws -> [String: [Decimal]] {
        let (keys, sums) = try #require(Self.figures[report])
        let (keyPlaces, places) = try (
            keys.map { try #require(listing.columns.firstIndex(of: $0)) },
            sums.map { try #require(listing.columns.firstIndex(of: $0)) }
        )
        let added = listing.rows.reduce(into: [String: [Decimal]]()) { all, row in
            let key = keyPlaces.map { "\(row[$0])" }.joined(separator: " ")
            let figures = places.map { Self.number(row[$0]) }
            all[key] = zip(all[key] ?? figures.map { _ in 0 }, figures).map(+)
        }
        return added.filter { $0.value.contains { $0 != 0 } }
    }

    private static func number(_ value: Server.JSONValue) -> Decimal {
        switch value {
        case .integer(let number): Decimal(number)
        case .string(let text): Decimal(string: text) ?? 0
        case .null, .bool, .array, .object: 0
        }
    }

    @Test func `every report with a dimension is compared`() {
        let named = Reports.all.filter { ReportStatement($0.text).variables.contains("by") }.map(\.name)
        #expect(Set(named) == Set(Self.figures.keys))
    }

    @Test(arguments: figures.keys.sorted())
    func `products add up to the total, whatever the buckets, the zone and the knowledge`(report: String) async throws {
        try await history.use { database in
            let buckets =
                try #require(Reports.all.first { $0.name == report }).text.contains(":'bucket'")
                ? ReportVariableTests.buckets : [""]
            for bucket in buckets {
                for known in ["infinity", "2026-03-20 15:00Z", "2026-02-23Z"] {
                    var given = ["as_known_at": known, "time_zone": "Asia/Tokyo", "from": "2024-12-15"]
                    if !bucket.isEmpty { given["bucket"] = bucket }
                    let total = try await listing(report, given, in: database)
                    let products = try await listing(report, given.merging(["by": "product"]) { $1 }, in: database)
                    let place = try #require(total.columns.firstIndex(of: "product_id"))
                    #expect(total.rows.allSatisfy { $0[place] == .null })
                    #expect(Set(products.rows.map { $0[place] }) == [.string("monthly"), .string("yearly")])
                    let expected = try sums(total, of: report)
                    #expect(try sums(products, of: report) == expected, "\(bucket) \(known)")
                    #expect(!expected.isEmpty, "\(bucket) \(known)")
                }
            }
        }
    }

    @Test func `each day's movements lead from one day's revenue of a product to the next`() async throws {
        try await history.use { database in
            for by in ["total", "product"] {
                let levels = try await listing("mrr", ["by": by], in: database)
                var mrr: [String: Decimal] = [:]
                for row in levels.rows { mrr["\(row[0]) \(row[2]) \(row[3])"] = Self.number(row[5]) }
                let moves = try await listing("mrr_movement", ["by": by], in: database)
                let places = try [
                    "opening", "new", "reactivation", "first_full_price", "expansion", "contraction",
                    "currency_change", "product_change", "churn", "closing",
                ].map { try #require(moves.columns.firstIndex(of: $0)) }
                for row in moves.rows where row[3] != .null {
                    let figures = places.map { Self.number(row[$0]) }
                    let key = "\(row[0]) \(row[2]) \(row[3])"
                    #expect(figures.dropLast().reduce(0, +) == figures.last, "\(key)")
                    #expect(figures.last == mrr[key] ?? 0, "\(key)")
                }
                #expect(moves.rows.count > 20)
            }
        }
    }
}
