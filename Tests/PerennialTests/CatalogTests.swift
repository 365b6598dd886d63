import Ledger
import Server
import Subscriptions
import Testing

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

    @Test(arguments: ["", "[]", "x", "a: [", "{\"app\": \"a\"}"])
    func `rubbish is a mistake`(text: String) {
        #expect(throws: CatalogMistakes.self) { try CatalogFile(text) }
    }
}
