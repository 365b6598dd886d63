import Subscriptions
import Tracking
import Yams

/// A conversion of a catalog's nodes into products that collects the mistakes.
struct CatalogReader {
    private static let productKeys = [
        "id", "kind", "group", "level", "period", "credit", "units", "delivers_since", "slot", "price", "currency",
        "entitlements", "offers",
    ]

    /// One sentence for each mistake, with its line and place.
    private(set) var mistakes: [String] = []

    /// Reads the products of the list `node`; each id may occur once.
    mutating func products(in node: Node?, of parent: Node) -> [CatalogProduct] {
        guard let node, let list = node.sequence else {
            note("give a list of products; [] is an empty catalog", at: "products", node ?? parent)
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
        let id = requiredText("id", in: fields, of: node, at: place)
        let kind = kind(in: fields, at: place)
        let group = text("group", in: fields, at: place)
        let level = level(in: fields, hasGroup: group != nil, at: place)
        let period = period(in: fields, at: place)
        let price = price(in: fields, of: node, at: place)
        // What adds to a credit grants no entitlement, so its list may be left out.
        let isCredit = kind == .consumable && fields["credit"] != nil && fields["entitlements"] == nil
        let entitlements =
            isCredit ? [] : entitlements(in: fields["entitlements"], of: node, at: "\(place).entitlements")
        var product = CatalogProduct(
            id: ProductID(id ?? ""), kind: kind, group: group, level: level, period: period,
            priceMilliunits: price?.milliunits, currency: price?.currency, entitlements: entitlements)
        readPurchaseTerms(of: &product, in: fields, of: node, at: place)
        return id == nil ? nil : product
    }

    private mutating func level(in fields: [String: Node], hasGroup: Bool, at place: String) -> Int32? {
        guard let text = text("level", in: fields, at: place), let node = fields["level"] else { return nil }
        if !hasGroup { note("a level needs a group", at: "\(place).level", node) }
        guard let level = Int32(text), level >= 1 else {
            note("'\(text)' is no level; 1 is the highest", at: "\(place).level", node)
            return nil
        }
        return level
    }

    private mutating func period(in fields: [String: Node], at place: String) -> String? {
        guard let text = text("period", in: fields, at: place), let node = fields["period"] else { return nil }
        guard text.first == "P", let unit = text.last, "DWMY".contains(unit),
            let count = Int(text.dropFirst().dropLast()),
            (1...1_000).contains(count), !text.contains("+")
        else {
            note("'\(text)' is no period; write P7D, P1W, P1M or P1Y", at: "\(place).period", node)
            return nil
        }
        return text
    }

    private mutating func price(
        in fields: [String: Node], of node: Node, at place: String
    ) -> (milliunits: Int64, currency: String)? {
        let price = text("price", in: fields, at: place)
        let currency = text("currency", in: fields, at: place)
        let milliunits = price.flatMap { Milliunits(decimal: $0)?.count }
        if let price, milliunits == nil {
            note(
                "'\(price)' is no price; write 4.99, with at most 3 decimals", at: "\(place).price",
                fields["price"] ?? node)
        }
        let isCurrency = currency.map { $0.isCurrency && $0 == $0.uppercased() } ?? true
        if let currency, !isCurrency {
            note("'\(currency)' is no currency; write USD", at: "\(place).currency", fields["currency"] ?? node)
        }
        if (price == nil) != (currency == nil) {
            note("price and currency go together", at: place, node)
        }
        guard let milliunits, let currency, isCurrency else { return nil }
        return (milliunits, currency)
    }

    private mutating func entitlements(in node: Node?, of parent: Node, at place: String) -> [String] {
        guard let node, let list = node.sequence else {
            note("list the entitlements that the product grants; [] grants none", at: place, node ?? parent)
            return []
        }
        var rights: [String] = []
        for (index, node) in list.enumerated() {
            guard let right = node.scalar?.string, !right.isEmpty, right.count <= 255, !right.contains(",") else {
                note("an entitlement is a name of 1 to 255 characters without a comma", at: "\(place)[\(index)]", node)
                continue
            }
            if rights.contains(right) { note("\(right) is in the list twice", at: "\(place)[\(index)]", node) }
            rights.append(right)
        }
        return rights
    }
}

extension CatalogReader {
    /// Returns the values of a mapping by key. Unknown keys are mistakes, because a misspelt one would be lost
    /// silently.
    mutating func fields(of node: Node, at place: String, known: [String]) -> [String: Node] {
        var fields: [String: Node] = [:]
        for (key, value) in node.mapping.map({ Array($0) }) ?? [] {
            guard let name = key.scalar?.string, known.contains(name) else {
                let name = key.scalar?.string ?? "a key that is no text"
                note("\(name) is unknown; known are \(known.joined(separator: ", "))", at: place, key)
                continue
            }
            if value.null == nil { fields[name] = value }
        }
        return fields
    }

    mutating func requiredText(_ key: String, in fields: [String: Node], of node: Node, at place: String) -> String? {
        if fields[key] == nil { note("\(key) is missing", at: place, node) }
        return text(key, in: fields, at: place)
    }

    /// Returns the text of a scalar, exactly as written.
    mutating func text(_ key: String, in fields: [String: Node], at place: String) -> String? {
        guard let node = fields[key] else { return nil }
        let here = place.isEmpty ? key : "\(place).\(key)"
        guard let text = node.scalar?.string, !text.isEmpty, text.count <= 255 else {
            note("give a text of 1 to 255 characters", at: here, node)
            return nil
        }
        return text
    }

    mutating func note(_ sentence: String, at place: String, _ node: Node) {
        let line = node.mark.map { "line \($0.line), " } ?? ""
        mistakes.append("\(line)\(place.isEmpty ? "top" : place): \(sentence).")
    }
}

/// What a purchase of a product means: its kind, its credit, and where it is on offer.
extension CatalogReader {
    /// Reads the kind of a product.
    mutating func kind(in fields: [String: Node], at place: String) -> ProductKind? {
        guard let text = text("kind", in: fields, at: place), let node = fields["kind"] else { return nil }
        guard let kind = ProductKind(rawValue: text) else {
            let known = ProductKind.allCases.map(\.rawValue).joined(separator: ", ")
            note("'\(text)' is no kind; the kinds are \(known)", at: "\(place).kind", node)
            return nil
        }
        return kind
    }

    /// Reads the fields that depend on the kind of a product.
    mutating func readPurchaseTerms(
        of product: inout CatalogProduct, in fields: [String: Node], of node: Node, at place: String
    ) {
        product.credit = credit(in: fields, of: product, node, at: place)
        product.deliversSince = instant("delivers_since", in: fields, at: place)
        product.slot = slot(in: fields["slot"], at: "\(place).slot")
        product.offers = offers(in: fields["offers"], at: "\(place).offers")
        if product.kind == .nonRenewing, product.period == nil, fields["period"] == nil {
            note("a non-renewing subscription needs a period, which says how long it lasts", at: place, node)
        }
        if product.kind == nil, let since = fields["delivers_since"] {
            note("delivers_since needs a kind", at: "\(place).delivers_since", since)
        }
        if product.slot != nil, product.kind == .autoRenewable, product.group == nil {
            note("a subscription in a slot needs its group", at: place, node)
        }
        if let offers = fields["offers"], !product.offers.isEmpty, product.kind != .autoRenewable {
            note("only a product of kind auto_renewable has promotional offers", at: "\(place).offers", offers)
        }
    }

    private mutating func credit(
        in fields: [String: Node], of product: CatalogProduct, _ node: Node, at place: String
    ) -> CatalogProduct.Credit? {
        let name = text("credit", in: fields, at: place)
        let units = count("units", upTo: CatalogProduct.Credit.unitsMax, in: fields, at: place)
        guard product.kind == .consumable else {
            if let extra = fields["credit"] ?? fields["units"] {
                note("credit and units belong to a product of kind consumable", at: place, extra)
            }
            return nil
        }
        if fields["credit"] == nil || fields["units"] == nil {
            note("a consumable needs credit and units, such as credit: coins, units: 100", at: place, node)
        }
        if !product.entitlements.isEmpty {
            note("a consumable is used up, so it grants no entitlement; leave entitlements out", at: place, node)
        }
        guard let name, let units else { return nil }
        return CatalogProduct.Credit(name: name, units: units)
    }

    private mutating func slot(in node: Node?, at place: String) -> CatalogProduct.Slot? {
        guard let node else { return nil }
        guard node.mapping != nil else {
            note("a slot has a name and a place, such as {name: main, place: 1}", at: place, node)
            return nil
        }
        let fields = fields(of: node, at: place, known: ["name", "place"])
        let name = requiredText("name", in: fields, of: node, at: place)
        if fields["place"] == nil { note("place is missing", at: place, node) }
        guard let number = count("place", upTo: 1_000, in: fields, at: place), let name else { return nil }
        return CatalogProduct.Slot(name: name, place: number)
    }

    private mutating func offers(in node: Node?, at place: String) -> [PromotionalOffer] {
        guard let node else { return [] }
        guard let list = node.sequence else {
            note("give a list of offers", at: place, node)
            return []
        }
        var ids: Set<String> = []
        return list.enumerated().compactMap { index, node in
            let place = "\(place)[\(index)]"
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
        let id = requiredText("id", in: fields, of: node, at: place)
        let audience = audience(in: fields["audience"], of: node, at: "\(place).audience")
        let (from, until) = (instant("from", in: fields, at: place), instant("until", in: fields, at: place))
        if let from, let until, from >= until, let node = fields["until"] {
            note("the offer ends before it begins", at: "\(place).until", node)
        }
        let once = fields["once"].map { node in
            if node.bool == nil { note("write true or false", at: "\(place).once", node) }
            return node.bool ?? false
        }
        guard let id, !audience.isEmpty else { return nil }
        return PromotionalOffer(id: id, audience: audience, from: from, until: until, once: once ?? false)
    }

    private mutating func audience(
        in node: Node?, of parent: Node, at place: String
    ) -> [PromotionalOffer.Audience] {
        let words = node?.sequence.map { $0.map { $0.scalar?.string ?? "" } } ?? []
        let audience = words.compactMap(PromotionalOffer.Audience.init(rawValue:))
        guard !audience.isEmpty, audience.count == words.count, Set(audience).count == audience.count else {
            note("say who may have it: [current], [lapsed] or [current, lapsed]", at: place, node ?? parent)
            return []
        }
        return audience
    }

    private mutating func instant(_ key: String, in fields: [String: Node], at place: String) -> Instant? {
        guard let text = text(key, in: fields, at: place), let node = fields[key] else { return nil }
        guard let instant = Instant(iso8601: text) else {
            note("'\(text)' is no instant; write 2026-11-20T12:00:00Z", at: "\(place).\(key)", node)
            return nil
        }
        return instant
    }

    private mutating func count(
        _ key: String, upTo most: Int32, in fields: [String: Node], at place: String
    ) -> Int32? {
        guard let text = text(key, in: fields, at: place), let node = fields[key] else { return nil }
        guard let count = Int32(text), (1...most).contains(count), !text.contains("+") else {
            note("'\(text)' is no whole number from 1 to \(most)", at: "\(place).\(key)", node)
            return nil
        }
        return count
    }
}
