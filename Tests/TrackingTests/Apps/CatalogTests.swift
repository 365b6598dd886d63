import Postgres
import Subscriptions
import Testing

@testable import Tracking

@Suite("A catalog decides what products grant and cost")
struct CatalogTests {
    private let yes: [Cell] = [true, "monthly", "active", nil, "Production", "verified"]

    private func product(_ rights: [String], _ id: ProductID = "monthly") -> CatalogProduct {
        CatalogProduct(
            id: id, group: "g", level: 1, period: "P1M", priceMilliunits: 9_990, currency: "EUR", entitlements: rights)
    }

    /// One live subscription of the product `monthly`.
    private func withSubscriber(_ body: (TestLedger) async throws -> Void) async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            try await body(test)
        }
    }

    private func granted(_ test: TestLedger, _ right: String, at: Instant? = nil, knownAt: Instant? = nil) async throws
        -> Bool
    {
        try await test.entitled(right, at: at, knownAt: knownAt)[0] == true
    }

    @Test(
        "Without a catalog a product grants its own id; a catalog grants for ever, and what was answered before stays")
    func firstApply() async throws {
        try await withSubscriber { test in
            #expect(try await test.entitled() == yes)
            let before = try await test.betweenChanges()
            try await test.ledger.apps.applyCatalog([product(["pro", "sync"])], to: test.app.bundleID)
            for right in ["pro", "sync"] {
                #expect(try await test.entitled(right) == yes)
                #expect(try await test.entitled(right, at: test.at(-5)) == yes)
                #expect(try await granted(test, right, knownAt: before) == false)
            }
            #expect(try await granted(test, "monthly") == false)
            #expect(try await granted(test, "monthly", knownAt: before))
            #expect(try await test.ledger.apps.catalog(of: test.app.bundleID) == [product(["pro", "sync"])])
        }
    }

    @Test("What is taken out of a product ends now; the past stays")
    func removal() async throws {
        try await withSubscriber { test in
            try await test.ledger.apps.applyCatalog([product(["pro", "sync"])], to: test.app.bundleID)
            let before = try await test.betweenChanges()
            try await test.ledger.apps.applyCatalog([product(["pro", "new"])], to: test.app.bundleID)
            #expect(try await granted(test, "pro"))
            #expect(try await granted(test, "sync") == false)
            #expect(try await granted(test, "sync", at: test.at(-2)))
            #expect(try await granted(test, "sync", knownAt: before))
            #expect(try await granted(test, "new"))
            #expect(
                try await granted(test, "new", at: test.at(-2)) == false,
                "an entitlement that is added later is granted from then on")
            try await test.ledger.apps.applyCatalog([product(["pro", "sync", "new"])], to: test.app.bundleID)
            #expect(try await granted(test, "sync"))
            #expect(try await test.ledger.apps.catalog(of: test.app.bundleID) == [product(["new", "pro", "sync"])])
        }
    }

    @Test("A product that leaves the catalog grants its own id from then on, and in the past what it granted")
    func productLeaves() async throws {
        try await withSubscriber { test in
            try await test.ledger.apps.applyCatalog([product(["pro"]), product(["x"], "other")], to: test.app.bundleID)
            let before = try await test.betweenChanges()
            try await test.ledger.apps.applyCatalog([product(["x"], "other")], to: test.app.bundleID)
            #expect(try await granted(test, "pro") == false)
            #expect(try await granted(test, "monthly"))
            #expect(try await granted(test, "pro", at: test.at(-2)))
            #expect(try await granted(test, "monthly", knownAt: before) == false)
            #expect(try await granted(test, "pro", knownAt: before))
            #expect(try await test.ledger.apps.catalog(of: test.app.bundleID).map(\.id) == ["other"])
            try await test.ledger.apps.applyCatalog([product(["pro"])], to: test.app.bundleID)
            #expect(try await granted(test, "pro"))
            #expect(try await granted(test, "monthly") == false)
        }
    }

    @Test("A product that is named with no entitlements grants nothing")
    func nothing() async throws {
        try await withSubscriber { test in
            try await test.ledger.apps.applyCatalog([product([])], to: test.app.bundleID)
            #expect(try await granted(test, "monthly") == false)
            #expect(
                try await test.ledger.customers.entitlements(app: test.app.bundleID, customer: "ann").filter(\.granted)
                    .isEmpty)
            #expect(try await test.ledger.apps.catalog(of: test.app.bundleID) == [product([])])
        }
    }

    @Test("Entitlements keep their names, also with commas")
    func names() async throws {
        try await withSubscriber { test in
            try await test.ledger.apps.applyCatalog([product(["a,b", "c\"d", "é"])], to: test.app.bundleID)
            #expect(try await test.ledger.apps.catalog(of: test.app.bundleID)[0].entitlements == ["a,b", "c\"d", "é"])
            #expect(try await test.entitled("a,b") == yes)
        }
    }

    @Test("Applying the same catalog again, even many times at once, says nothing new")
    func again() async throws {
        try await withLedger(connections: 8) { test in
            let (one, two) = ([product(["pro"])], [product(["pro", "sync"]), product([], "other")])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<24 {
                    group.addTask {
                        try await test.ledger.apps.applyCatalog(index % 2 == 0 ? one : two, to: test.app.bundleID)
                    }
                }
                try await group.waitForAll()
            }
            try await test.ledger.apps.applyCatalog(two, to: test.app.bundleID)
            let before = try await test.rows("SELECT g::text AS row FROM ledger.catalog_grant g ORDER BY 1")
            try await test.ledger.apps.applyCatalog(two, to: test.app.bundleID)
            #expect(try await test.rows("SELECT g::text AS row FROM ledger.catalog_grant g ORDER BY 1") == before)
        }
    }

    @Test("Revenue has the catalog's prices for charges and refunds; offers are unknown")
    func revenue() async throws {
        try await withLedger { test in
            try await test.ledger.apps.applyCatalog([product(["pro"])], to: test.app.bundleID)
            let life = Answer(from: test.at(-70), periods: 3, asOf: test.at(-1)).but {
                ($0.trial, $0.refunded) = (true, (2, test.at(-2)))
            }
            try await test.check(try await test.upload("a"), life)
            try await test.expectRows(
                """
                SELECT kind, amount_milliunits, currency, price_basis, customer FROM perennial.revenue_event
                ORDER BY occurred_at
                """,
                [
                    ["charge", 9990, "EUR", "default", "ann"], ["charge", 9990, "EUR", "default", "ann"],
                    ["refund", -9990, "EUR", "default", "ann"],
                ])
        }
    }
}

@Suite("Prices in thousandths")
struct MilliunitsTests {
    @Test(
        "A price is exact",
        arguments: [
            ("0", 0), ("10", 10_000), ("4.99", 4_990), ("4.990", 4_990), ("4.9900", 4_990), ("0.001", 1),
            ("1.2340", 1_234), ("007.5", 7_500), ("1000", 1_000_000), ("999999999999.999", 999_999_999_999_999),
            ("0.0010000000000000000000", 1), ("4.9995", nil), ("1.2345", nil), ("", nil), (".5", nil), ("5.", nil),
            ("-1", nil), ("+1", nil), ("1e3", nil), ("1,5", nil), ("1000000000000", nil),
            ("9223372036854775.807", nil), ("99999999999999999999", nil), ("٣", nil), (" 1", nil), ("1.2.3", nil),
            ("NaN", nil), ("0x10", nil),
        ] as [(String, Int64?)])
    func exact(_ text: String, _ milliunits: Int64?) {
        let price = Milliunits(decimal: text)
        #expect(price?.count == milliunits)
        if let price { #expect(Milliunits(decimal: price.decimal) == price) }
    }

    @Test(
        "A price is written with two or three decimals",
        arguments: [
            (0, "0.00"), (1, "0.001"), (4_990, "4.99"), (10_500, "10.50"), (-10, "-0.01"),
            (.max, "9223372036854775.807"), (.min, "-9223372036854775.808"),
        ] as [(Int64, String)])
    func written(_ milliunits: Int64, _ text: String) {
        #expect(Milliunits(milliunits).decimal == text)
    }
}
