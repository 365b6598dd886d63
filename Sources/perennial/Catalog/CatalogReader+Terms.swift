import Ledger
import Subscriptions
import Yams

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
