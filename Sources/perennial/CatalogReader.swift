import Subscriptions
import Tracking
import Yams

/// A conversion of a catalog's nodes into products that collects the mistakes.
struct CatalogReader {
    /// A mapping of the file: its values by key, and its place for messages.
    struct Fields {
        let node: Node
        /// Such as `products[0]`; empty for the whole file.
        let place: String
        fileprivate(set) var values: [String: Node] = [:]

        subscript(key: String) -> Node? { values[key] }

        func place(of key: String) -> String { place.isEmpty ? key : "\(place).\(key)" }
    }

    private static let productKeys = [
        "id", "kind", "group", "level", "period", "credit", "units", "delivers_since", "slot", "price", "currency",
        "entitlements", "offers",
    ]

    /// One sentence for each mistake, with its line and place.
    private(set) var mistakes: [String] = []

    /// Reads the products of a catalog; each id may occur once.
    mutating func products(in catalog: Fields) -> [CatalogProduct] {
        guard let list = catalog["products"]?.sequence else {
            note("give a list of products; [] is an empty catalog", in: catalog, "products")
            return []
        }
        var ids: Set<String> = []
        var places: [CatalogProduct.Slot: String] = [:]
        var groups: [String: Set<String>] = [:]
        return list.enumerated().compactMap { index, node in
            let place = "products[\(index)]"
            guard node.mapping != nil else {
                note("a product has keys, such as id", at: place, node)
                return nil
            }
            let product = product(node, at: place)
            if let id = product?.id.text, !ids.insert(id).inserted {
                note("\(id) is in the list twice", at: "\(place).id", node)
            }
            if let product, let slot = product.slot {
                if let taken = places.updateValue(product.id.text, forKey: slot) {
                    note("\(taken) has place \(slot.place) of \(slot.name) already", at: "\(place).slot", node)
                }
                // Apple moves a subscription within its group, so a product of the same group is no alternate.
                if let group = product.group, !groups[slot.name, default: []].insert(group).inserted {
                    note(
                        "the subscriptions of a slot need different groups; \(group) is in \(slot.name) twice",
                        at: "\(place).group", node)
                }
            }
            return product
        }
    }

    private mutating func product(_ node: Node, at place: String) -> CatalogProduct? {
        let fields = fields(of: node, at: place, known: Self.productKeys)
        let id = requiredText("id", in: fields)
        let kinds = ProductKind.allCases.map(\.rawValue).joined(separator: ", ")
        let kind = value("kind", in: fields, "kind; the kinds are \(kinds)") { ProductKind(rawValue: $0) }
        let group = text("group", in: fields)
        let level = level(in: fields, hasGroup: group != nil)
        let period = value("period", in: fields, "period; write P7D, P1W, P1M or P1Y") { $0.isPeriod ? $0 : nil }
        let price = price(in: fields)
        // What adds to a credit grants no entitlement, so its list may be left out.
        let isCredit = kind == .consumable && fields["credit"] != nil && fields["entitlements"] == nil
        let entitlements = isCredit ? [] : entitlements(in: fields)
        var product = CatalogProduct(
            id: ProductID(id ?? ""), kind: kind, group: group, level: level, period: period,
            priceMilliunits: price?.milliunits, currency: price?.currency, entitlements: entitlements)
        readPurchaseTerms(of: &product, in: fields)
        return id == nil ? nil : product
    }

    private mutating func level(in fields: Fields, hasGroup: Bool) -> Int32? {
        guard let text = text("level", in: fields) else { return nil }
        if !hasGroup { note("a level needs a group", in: fields, "level") }
        guard let level = Int32(text), level >= 1 else {
            note("'\(text)' is no level; 1 is the highest", in: fields, "level")
            return nil
        }
        return level
    }

    private mutating func price(in fields: Fields) -> (milliunits: Int64, currency: String)? {
        let price = text("price", in: fields)
        let currency = text("currency", in: fields)
        let milliunits = price.flatMap { Milliunits(decimal: $0)?.count }
        if let price, milliunits == nil {
            note("'\(price)' is no price; write 4.99, with at most 3 decimals", in: fields, "price")
        }
        let isCurrency = currency.map { $0.isCurrency && $0 == $0.uppercased() } ?? true
        if let currency, !isCurrency { note("'\(currency)' is no currency; write USD", in: fields, "currency") }
        if (price == nil) != (currency == nil) { note("price and currency go together", in: fields) }
        guard let milliunits, let currency, isCurrency else { return nil }
        return (milliunits, currency)
    }

    private mutating func entitlements(in fields: Fields) -> [String] {
        guard let list = fields["entitlements"]?.sequence else {
            note("list the entitlements that the product grants; [] grants none", in: fields, "entitlements")
            return []
        }
        var rights: [String] = []
        for (index, node) in list.enumerated() {
            let place = "\(fields.place).entitlements[\(index)]"
            guard let right = node.scalar?.string, !right.isEmpty, right.count <= 255, !right.contains(",") else {
                note("an entitlement is a name of 1 to 255 characters without a comma", at: place, node)
                continue
            }
            if rights.contains(right) { note("\(right) is in the list twice", at: place, node) }
            rights.append(right)
        }
        return rights
    }
}

extension CatalogReader {
    /// Returns the values of a mapping. Unknown keys are mistakes, because a misspelt one would be lost silently.
    mutating func fields(of node: Node, at place: String, known: [String]) -> Fields {
        var fields = Fields(node: node, place: place)
        for (key, value) in node.mapping.map({ Array($0) }) ?? [] {
            guard let name = key.scalar?.string, known.contains(name) else {
                let name = key.scalar?.string.shortened(to: 255) ?? "a key that is no text"
                note("\(name) is unknown; known are \(known.joined(separator: ", "))", at: place, key)
                continue
            }
            if value.null == nil { fields.values[name] = value }
        }
        return fields
    }

    mutating func requiredText(_ key: String, in fields: Fields) -> String? {
        if fields[key] == nil { note("\(key) is missing", in: fields) }
        return text(key, in: fields)
    }

    /// Returns the text of a scalar, exactly as written.
    private mutating func text(_ key: String, in fields: Fields) -> String? {
        guard let node = fields[key] else { return nil }
        guard let text = node.scalar?.string, !text.isEmpty, text.count <= 255 else {
            note("give a text of 1 to 255 characters", in: fields, key)
            return nil
        }
        return text
    }

    /// Returns the value of a scalar; a text that cannot be converted is no `what`.
    private mutating func value<Value>(
        _ key: String, in fields: Fields, _ what: String, _ convert: (String) -> Value?
    ) -> Value? {
        guard let text = text(key, in: fields) else { return nil }
        let value = convert(text)
        if value == nil { note("'\(text)' is no \(what)", in: fields, key) }
        return value
    }

    /// Notes a mistake in the value of a key, or in the mapping itself.
    private mutating func note(_ sentence: String, in fields: Fields, _ key: String? = nil) {
        note(sentence, at: key.map(fields.place(of:)) ?? fields.place, key.flatMap { fields[$0] } ?? fields.node)
    }

    private mutating func note(_ sentence: String, at place: String, _ node: Node) {
        let line = node.mark.map { "line \($0.line), " } ?? ""
        mistakes.append("\(line)\(place.isEmpty ? "top" : place): \(sentence).")
    }
}

/// What a purchase of a product means: its credit, and where it is on offer.
extension CatalogReader {
    private mutating func readPurchaseTerms(of product: inout CatalogProduct, in fields: Fields) {
        product.credit = credit(in: fields, of: product)
        product.deliversSince = instant("delivers_since", in: fields)
        product.slot = slot(in: fields)
        product.offers = offers(in: fields)
        if product.kind == .nonRenewing, product.period == nil, fields["period"] == nil {
            note("a non-renewing subscription needs a period, which says how long it lasts", in: fields)
        }
        if product.kind == nil, fields["delivers_since"] != nil {
            note("delivers_since needs a kind", in: fields, "delivers_since")
        }
        if product.slot != nil, product.kind == .autoRenewable, product.group == nil {
            note("a subscription in a slot needs its group", in: fields)
        }
        if !product.offers.isEmpty, product.kind != .autoRenewable {
            note("only a product of kind auto_renewable has promotional offers", in: fields, "offers")
        }
    }

    private mutating func credit(in fields: Fields, of product: CatalogProduct) -> CatalogProduct.Credit? {
        let name = text("credit", in: fields)
        let units = count("units", upTo: CatalogProduct.Credit.unitsMax, in: fields)
        guard product.kind == .consumable else {
            if let extra = fields["credit"] ?? fields["units"] {
                note("credit and units belong to a product of kind consumable", at: fields.place, extra)
            }
            return nil
        }
        if fields["credit"] == nil || fields["units"] == nil {
            note("a consumable needs credit and units, such as credit: coins, units: 100", in: fields)
        }
        if !product.entitlements.isEmpty {
            note("a consumable is used up, so it grants no entitlement; leave entitlements out", in: fields)
        }
        guard let name, let units else { return nil }
        return CatalogProduct.Credit(name: name, units: units)
    }

    private mutating func slot(in product: Fields) -> CatalogProduct.Slot? {
        guard let node = product["slot"] else { return nil }
        guard node.mapping != nil else {
            note("a slot has a name and a place, such as {name: main, place: 1}", in: product, "slot")
            return nil
        }
        let fields = fields(of: node, at: product.place(of: "slot"), known: ["name", "place"])
        let name = requiredText("name", in: fields)
        if fields["place"] == nil { note("place is missing", in: fields) }
        guard let number = count("place", upTo: 1_000, in: fields), let name else { return nil }
        return CatalogProduct.Slot(name: name, place: number)
    }

    private mutating func offers(in product: Fields) -> [PromotionalOffer] {
        guard let node = product["offers"] else { return [] }
        guard let list = node.sequence else {
            note("give a list of offers", in: product, "offers")
            return []
        }
        var ids: Set<String> = []
        return list.enumerated().compactMap { index, node in
            let place = "\(product.place).offers[\(index)]"
            guard node.mapping != nil else {
                note("an offer has keys, such as id", at: place, node)
                return nil
            }
            let offer = offer(node, at: place)
            if let id = offer?.id, !ids.insert(id).inserted { note("\(id) is in the list twice", at: place, node) }
            return offer
        }
    }

    private mutating func offer(_ node: Node, at place: String) -> PromotionalOffer? {
        let fields = fields(of: node, at: place, known: ["id", "audience", "from", "until", "once"])
        let id = requiredText("id", in: fields)
        let audience = audience(in: fields)
        let (from, until) = (instant("from", in: fields), instant("until", in: fields))
        if let from, let until, from >= until { note("the offer ends before it begins", in: fields, "until") }
        let once = fields["once"]
        if let once, once.bool == nil { note("write true or false", in: fields, "once") }
        guard let id, !audience.isEmpty else { return nil }
        return PromotionalOffer(id: id, audience: audience, from: from, until: until, once: once?.bool ?? false)
    }

    private mutating func audience(in fields: Fields) -> [PromotionalOffer.Audience] {
        let words = fields["audience"]?.sequence.map { $0.map { $0.scalar?.string ?? "" } } ?? []
        let audience = words.compactMap(PromotionalOffer.Audience.init(rawValue:))
        guard !audience.isEmpty, audience.count == words.count, Set(audience).count == audience.count else {
            note("say who may have it: [current], [lapsed] or [current, lapsed]", in: fields, "audience")
            return []
        }
        return audience
    }

    private mutating func instant(_ key: String, in fields: Fields) -> Instant? {
        value(key, in: fields, "instant; write 2026-11-20T12:00:00Z") { Instant(iso8601: $0) }
    }

    private mutating func count(_ key: String, upTo most: Int32, in fields: Fields) -> Int32? {
        value(key, in: fields, "whole number from 1 to \(most)") { text in
            Int32(text).flatMap { (1...most).contains($0) && !text.contains("+") ? $0 : nil }
        }
    }
}

extension String {
    /// Whether the text is a period of a catalog: 1 to 1,000 days, weeks, months or years.
    fileprivate var isPeriod: Bool {
        guard first == "P", let unit = last, "DWMY".contains(unit), let count = Int(dropFirst().dropLast()) else {
            return false
        }
        return (1...1_000).contains(count) && !contains("+")
    }
}
