import Ledger
import Subscriptions
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
        let isCurrency = currency.map { $0.count == 3 && $0.allSatisfy { ("A"..."Z").contains($0) } } ?? true
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

    /// Returns a required text.
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
