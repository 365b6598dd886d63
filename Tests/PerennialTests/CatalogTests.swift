import JSON
import Server
import Subscriptions
import Testing
import Tracking

@testable import perennial

@Suite("A catalog file is read whole, or refused with all its mistakes") struct CatalogTests {
    @Test func `YAML and JSON say the same, and both are read again`() throws {
        let yaml = try CatalogFile(
            """
            app: com.example.tracker
            products:
              - {id: com.example.tracker.monthly, group: "20000001", level: 2, period: P1M, price: 4.99, currency: USD, entitlements: [pro]}
              - id: com.example.tracker.lifetime
                price: 100
                currency: EUR
                entitlements: [pro, "extra: rights"]
            """)
        #expect(yaml.bundleID == "com.example.tracker")
        #expect(yaml.products.map(\.priceMilliunits) == [4_990, 100_000])
        #expect(yaml.products.map(\.level) == [2, nil])
        #expect(yaml.products.map(\.entitlements) == [["pro"], ["pro", "extra: rights"]])
        for text in [yaml.yaml, yaml.json.rendered(), yaml.json.rendered(pretty: true)] {
            #expect(try CatalogFile(text).products == yaml.products)
        }
        #expect(try CatalogFile(CatalogFile(bundleID: "a", products: []).yaml).products.isEmpty)
    }

    @Test func `what a purchase means is read and written again`() throws {
        let catalog = try CatalogFile(
            """
            app: com.example.tracker
            products:
              - {id: coins, kind: consumable, credit: coins, units: 100, delivers_since: 2026-11-20T12:00:00Z}
              - {id: season, kind: non_renewing, period: P3M, slot: {name: shows, place: 1}, entitlements: [shows]}
              - id: monthly
                kind: auto_renewable
                group: "1"
                slot: {name: shows, place: 2}
                entitlements: [shows]
                offers:
                  - {id: back, audience: [lapsed], from: 2026-01-01T00:00:00Z, until: 2027-01-01T00:00:00Z, once: true}
                  - {id: stay, audience: [current, lapsed]}
            """)
        #expect(catalog.products.map(\.kind) == [.consumable, .nonRenewing, .autoRenewable])
        #expect(catalog.products[0].credit == CatalogProduct.Credit(name: "coins", units: 100))
        #expect(catalog.products[0].deliversSince == Instant(iso8601: "2026-11-20T12:00:00Z"))
        #expect(catalog.products[2].slot == CatalogProduct.Slot(name: "shows", place: 2))
        #expect(catalog.products[2].offers.map(\.audience) == [[.lapsed], [.current, .lapsed]])
        #expect(catalog.products[2].offers.map(\.once) == [true, false])
        for text in [catalog.yaml, catalog.json.rendered()] {
            #expect(try CatalogFile(text).products == catalog.products)
        }
    }

    @Test(arguments: [
        ("{id: a, kind: coins, entitlements: []}", "'coins' is no kind"),
        ("{id: a, kind: consumable, entitlements: []}", "a consumable needs credit and units"),
        ("{id: a, kind: consumable}", "list the entitlements that the product grants"),
        ("{id: a, kind: non_consumable}", "list the entitlements that the product grants"),
        ("{id: a, kind: consumable, credit: c, units: 0, entitlements: []}", "'0' is no whole number from 1"),
        ("{id: a, kind: consumable, credit: c, units: 1, entitlements: [pro]}", "a consumable is used up"),
        ("{id: a, kind: non_consumable, units: 1, entitlements: []}", "credit and units belong to"),
        ("{id: a, kind: non_renewing, entitlements: []}", "a non-renewing subscription needs a period"),
        ("{id: a, delivers_since: 2026-11-20T12:00:00Z, entitlements: []}", "delivers_since needs a kind"),
        ("{id: a, kind: non_consumable, delivers_since: soon, entitlements: []}", "'soon' is no instant"),
        ("{id: a, kind: auto_renewable, slot: {name: s, place: 1}, entitlements: []}", "in a slot needs its group"),
        ("{id: a, slot: {name: s}, entitlements: []}", "place is missing"),
        ("{id: a, slot: s, entitlements: []}", "a slot has a name and a place"),
        ("{id: a, entitlements: [], offers: [{id: o, audience: [lapsed]}]}", "only a product of kind"),
        ("{id: a, kind: auto_renewable, entitlements: [], offers: [{id: o, audience: [new]}]}", "say who may have it"),
        (
            "{id: a, kind: auto_renewable, entitlements: [], offers: [{id: o, audience: [lapsed], "
                + "from: 2026-01-02T00:00:00Z, until: 2026-01-01T00:00:00Z}]}", "the offer ends before it begins"
        ),
    ])
    func `a contradiction is a mistake`(product: String, mistake: String) throws {
        let error = #expect(throws: CatalogMistakes.self) { try CatalogFile("app: a\nproducts: [\(product)]") }
        #expect(error?.lines.contains { $0.contains(mistake) } == true, "\(error?.lines ?? [])")
    }

    @Test func `alternates need different places and groups`() {
        let error = #expect(throws: CatalogMistakes.self) {
            try CatalogFile(
                """
                app: a
                products:
                  - {id: a, kind: auto_renewable, group: g, slot: {name: s, place: 1}, entitlements: []}
                  - {id: b, kind: auto_renewable, group: g, slot: {name: s, place: 1}, entitlements: []}
                """)
        }
        #expect(error?.lines.count == 2, "\(error?.lines ?? [])")
    }

    @Test func `all mistakes are reported with their place`() {
        let text = """
            ap: x
            products:
              - {id: a, level: 0, period: month, price: 4.9999, currency: usd, entitlements: [a, a, ""]}
              - {id: a, price: 1, entitlement: [x]}
              - 7
            """
        let expected = [
            "line 1, top: ap is unknown", "line 1, top: app is missing", "line 3, products[0].level: a level needs",
            "line 3, products[0].level: '0'", "line 3, products[0].period", "line 3, products[0].price",
            "line 3, products[0].currency", "line 3, products[0].entitlements[1]",
            "line 3, products[0].entitlements[2]", "line 4, products[1]: entitlement is unknown;",
            "line 4, products[1]: price and currency", "line 4, products[1].entitlements: list",
            "line 4, products[1].id: a is in the list twice", "line 5, products[2]",
        ]
        do {
            _ = try CatalogFile(text)
            Issue.record("The catalog was accepted.")
        } catch {
            #expect(error.lines.count == expected.count, "\(error.lines)")
            for start in expected {
                #expect(error.lines.contains { $0.hasPrefix(start) }, "\(start) is not in \(error.lines)")
            }
        }
    }

    @Test func `a mistake quotes no more than a few lines of the file`() {
        let products = String(repeating: "{\"id\": \"a\"}, ", count: 5_000)
        for text in [
            "{\"app\": \"a\", \"products\": [\(products)}",
            "app: a\n\(String(repeating: "k", count: 900)): 1\nproducts: []",
        ] {
            let error = #expect(throws: CatalogMistakes.self) { try CatalogFile(text) }
            #expect(error?.lines.allSatisfy { $0.count < 600 } == true)
        }
    }

    @Test(arguments: ["", "[]", "x", "a: [", "{\"app\": \"a\"}"])
    func `rubbish is a mistake`(text: String) {
        #expect(throws: CatalogMistakes.self) { try CatalogFile(text) }
    }
}
