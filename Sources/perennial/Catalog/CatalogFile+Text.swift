import Ledger
import Server
import Subscriptions

extension CatalogFile {
    /// The catalog as YAML that `catalog apply` reads again.
    var yaml: String {
        var lines = ["app: \(Self.quoted(bundleID.text))", products.isEmpty ? "products: []" : "products:"]
        for product in products {
            let fields = Self.fields(of: product).map { "\($0.name): \(Self.flow($0.value))" }
            lines.append("  - {\(fields.joined(separator: ", "))}")
        }
        return lines.joined(separator: "\n")
    }

    /// The catalog as JSON that `catalog apply` reads again.
    var json: JSONValue {
        [
            "app": .string(bundleID.text),
            "products": .array(
                products.map { product in
                    .object(Dictionary(Self.fields(of: product).map { ($0.name, $0.value) }) { first, _ in first })
                }),
        ]
    }

    /// The catalog for human readers.
    var listing: Listing {
        var listing = Listing(columns: [
            "id", "kind", "group", "level", "period", "credit", "units", "slot", "price", "currency", "entitlements",
        ])
        listing.rows = products.map { product in
            let fields = Dictionary(Self.fields(of: product).map { ($0.name, $0.value) }) { first, _ in first }
            return listing.columns.map { fields[$0] ?? .null }
        }
        return listing
    }

    /// Returns the fields of a product, in the usual order. A price is text, so that no reader rounds it.
    private static func fields(of product: CatalogProduct) -> [(name: String, value: JSONValue)] {
        let fields: [(name: String, value: JSONValue)] = [
            ("id", .string(product.id.text)), ("kind", .optional(product.kind?.rawValue)),
            ("group", .optional(product.group)),
            ("level", product.level.map { .integer(Int64($0)) } ?? .null), ("period", .optional(product.period)),
            ("credit", .optional(product.credit?.name)),
            ("units", product.credit.map { .integer(Int64($0.units)) } ?? .null),
            ("delivers_since", .optional(product.deliversSince)), ("slot", product.slot?.json ?? .null),
            ("price", .optional(product.priceMilliunits.map { Milliunits($0).decimal })),
            ("currency", .optional(product.currency)),
            ("entitlements", .array(product.entitlements.map { .string($0) })),
            ("offers", product.offers.isEmpty ? .null : .array(product.offers.map(\.json))),
        ]
        return fields.filter { $0.value != .null }
    }

    /// Quotes a text as JSON does, which is valid YAML too.
    private static func quoted(_ text: String) -> String { JSONValue.string(text).rendered() }

    private static func flow(_ value: JSONValue) -> String {
        switch value {
        case .array(let values): "[\(values.map(flow).joined(separator: ", "))]"
        case .object(let members):
            "{\(members.sorted { $0.key < $1.key }.map { "\($0.key): \(flow($0.value))" }.joined(separator: ", "))}"
        case .null, .bool, .integer, .string: value.rendered()
        }
    }
}

extension CatalogProduct.Slot {
    fileprivate var json: JSONValue { ["name": .string(name), "place": .integer(Int64(place))] }
}

extension PromotionalOffer {
    fileprivate var json: JSONValue {
        var members: [String: JSONValue] = [
            "id": .string(id), "audience": .array(audience.map { .string($0.rawValue) }), "once": .bool(once),
        ]
        members["from"] = from.map { .string($0.iso8601) }
        members["until"] = until.map { .string($0.iso8601) }
        return .object(members)
    }
}
