import Foundation
import Postgres
import SQL
package import Subscriptions

extension LedgerApps {
    /// Replaces the whole catalog of an app with the given products; earlier grants remain true for the time before
    /// now. Throws `invalid` for an empty entitlement name, `unknownApp` for an unknown app.
    package func applyCatalog(_ products: [CatalogProduct], to bundleID: BundleID) async throws {
        guard !products.contains(where: { $0.entitlements.contains("") }) else {
            throw LedgerError(
                .invalid, "An entitlement has a name; leave the list empty for a product that grants none.")
        }
        // A grant with an empty entitlement name marks each product as named by the catalog.
        let grants = products.flatMap { product in
            ([""] + product.entitlements).map { (product: product.id.text, entitlement: $0) }
        }
        _ = try await app(bundleID)
        try await database.transaction { transaction in
            guard let row = try transaction.query(Queries.lockCatalog, .text(bundleID.text)).first else { return }
            let app = Parameter.int4(try row.int4("app_id"))
            // Read under the lock, so that of two catalogs the one applied later also has the later time.
            guard let clock = try transaction.query(Queries.readClock).first else { return }
            let recordedAt = Parameter.timestamptz(
                microseconds: max(try clock.timestamptz("recorded_at"), try row.timestamptz("catalog_changed_at") + 1))
            let granted = [app, .texts(grants.map(\.product)), .texts(grants.map(\.entitlement)), recordedAt]
            let begun = try transaction.query(Queries.insertGrants, granted)
            let ended = try transaction.query(Queries.endGrants, granted)
            let redefined = try transaction.query(
                Queries.recordTerms, app, recordedAt, .texts(products.map(\.id.text)),
                .texts(products.map(\.kind?.rawValue)), .texts(products.map(\.period)))
            if !begun.isEmpty || !ended.isEmpty || !redefined.isEmpty {
                try transaction.query(Queries.changeCatalog, app, recordedAt)
            }
            try replace(products, of: app, in: transaction)
            try transaction.query(Queries.requestRelease, app)
            try ledger.audit(.catalogApplied, app: bundleID, detail: ["products": "\(products.count)"], in: transaction)
        }
    }

    private func replace(_ products: [CatalogProduct], of app: Parameter, in transaction: Transaction) throws {
        try transaction.query(Queries.deleteProducts, app, .texts(products.map(\.id.text)))
        try transaction.query(
            Queries.upsertProducts, app, .texts(products.map(\.id.text)), .texts(products.map(\.group)),
            .int4s(products.map(\.level)), .texts(products.map(\.period)), .int8s(products.map(\.priceMilliunits)),
            .texts(products.map(\.currency)), .texts(products.map(\.kind?.rawValue)),
            .texts(products.map(\.credit?.name)), .int4s(products.map(\.credit?.units)),
            .instants(products.map(\.deliversSince)), .texts(products.map(\.slot?.name)),
            .int4s(products.map(\.slot?.place)))
        let offers = products.flatMap { product in product.offers.map { (product: product.id.text, offer: $0) } }
        try transaction.query(
            Queries.replaceOffers, app, .texts(offers.map(\.product)), .texts(offers.map(\.offer.id)),
            .texts(offers.map { $0.offer.audience.map(\.rawValue).joined(separator: ",") }),
            .instants(offers.map(\.offer.from)), .instants(offers.map(\.offer.until)), .bools(offers.map(\.offer.once)))
    }

    /// Returns the catalog of an app as it applies now; throws `unknownApp` for an unknown app.
    package func catalog(of bundleID: BundleID) async throws -> [CatalogProduct] {
        _ = try await app(bundleID)
        return try await database.transaction { transaction in
            try CatalogProduct.all(
                try transaction.query(Queries.listProducts, .text(bundleID.text)),
                offers: try transaction.query(Queries.listOffers, .text(bundleID.text)))
        }
    }
}

/// One product of an app's catalog.
package struct CatalogProduct: Sendable, Hashable {
    /// What a consumable adds when it is delivered.
    package struct Credit: Sendable, Hashable {
        package static let unitsMax: Int32 = 1_000_000_000

        /// The name of what it adds to, such as coins.
        package var name: String
        /// The number of units that one of it adds.
        package var units: Int32

        package init(name: String, units: Int32) { (self.name, self.units) = (name, units) }
    }

    /// The place of a product among products that replace one another on sale.
    package struct Slot: Sendable, Hashable {
        package var name: String
        /// The place; 1 is offered first.
        package var place: Int32

        package init(name: String, place: Int32) { (self.name, self.place) = (name, place) }
    }

    package var id: ProductID
    /// What the product is; nil: the catalog does not say, so a purchase of it is kept for good and delivers nothing.
    package var kind: ProductKind?
    package var group: String?
    /// Its level in the group; 1 is the highest, as in App Store Connect.
    package var level: Int32?
    /// Its period as an ISO 8601 duration, such as P1M; of a non-renewing subscription, how long one lasts.
    package var period: String?
    /// What a consumable adds; nil for every other kind.
    package var credit: Credit?
    /// What was bought before is not delivered; nil: before it got its kind.
    package var deliversSince: Instant?
    /// Its place among products that replace one another on sale.
    package var slot: Slot?
    /// Its price in thousandths of the currency's unit.
    package var priceMilliunits: Int64?
    package var currency: String?
    package var entitlements: [String]
    package var offers: [PromotionalOffer] = []

    package init(
        id: ProductID, kind: ProductKind? = nil, group: String? = nil, level: Int32? = nil, period: String? = nil,
        priceMilliunits: Int64? = nil, currency: String? = nil, entitlements: [String]
    ) {
        self.id = id
        self.kind = kind
        self.group = group
        self.level = level
        self.period = period
        self.priceMilliunits = priceMilliunits
        self.currency = currency
        self.entitlements = entitlements
    }

    private init(row: Row, offers: [String: [PromotionalOffer]]) throws {
        id = try row.id("product_id")
        kind = try row.wordIfPresent("kind")
        group = try row.textIfPresent("group_id")
        level = try row.int4IfPresent("level")
        period = try row.textIfPresent("period")
        credit = try row.textIfPresent("credit").map { Credit(name: $0, units: try row.int4("units")) }
        deliversSince = try row.instantIfPresent("delivers_since")
        slot = try row.textIfPresent("slot").map { Slot(name: $0, place: try row.int4("slot_place")) }
        priceMilliunits = try row.int8IfPresent("price_milliunits")
        currency = try row.textIfPresent("currency")
        entitlements = try row.texts("entitlements")
        self.offers = offers[id.text] ?? []
    }

    static func all(_ products: [Row], offers: [Row]) throws -> [CatalogProduct] {
        let offers = try offers.reduce(into: [String: [PromotionalOffer]]()) { offers, row in
            offers[try row.text("product_id"), default: []].append(try PromotionalOffer(row: row))
        }
        return try products.map { try CatalogProduct(row: $0, offers: offers) }
    }
}

/// A promotional offer of a subscription, as App Store Connect has it.
package struct PromotionalOffer: Sendable, Hashable {
    /// Customers who may have an offer.
    package enum Audience: String, Sendable, CaseIterable {
        /// Who subscribes to a product of the app.
        case current
        /// Who subscribed to one, and subscribes to none of the product's group.
        case lapsed
    }

    /// The offer's identifier in App Store Connect.
    package var id: String
    package var audience: [Audience]
    /// When it may be signed first; nil: no such limit.
    package var from: Instant?
    /// When it may not be signed any more; nil: no such limit.
    package var until: Instant?
    /// Whether a customer may redeem it only once.
    package var once: Bool

    package init(id: String, audience: [Audience], from: Instant? = nil, until: Instant? = nil, once: Bool = false) {
        (self.id, self.audience) = (id, audience)
        (self.from, self.until, self.once) = (from, until, once)
    }

    fileprivate init(row: Row) throws {
        id = try row.text("offer_id")
        audience = try row.texts("audience").compactMap(Audience.init(rawValue:))
        from = try row.instantIfPresent("starts")
        until = try row.instantIfPresent("ends")
        once = try row.bool("once")
    }
}

extension LedgerApps {
    /// The number of subscriptions, and of purchases, searched in each environment for products that no catalog names.
    private static let thingsLookedThrough: Int32 = 1_000

    /// Throws `invalid` for an entitlement that the app cannot grant, such as a misspelt one. The app grants those of
    /// its catalog, and its product ids. The error ends with `advice`, which says what to do for a future entitlement.
    package func requireKnownEntitlement(_ name: String, of bundleID: BundleID, orElse advice: String) async throws {
        try ManualGrant.requireEntitlement(name)
        let known = try await query(
            Queries.knownEntitlements, .text(bundleID.text), .int4(Self.thingsLookedThrough)
        ).map { try $0.text("name") }
        guard !known.contains(name) else { return }
        let hint = known.nearest(to: name).map { "; the nearest name is \($0)." } ?? "."
        throw LedgerError(.invalid, "No product of \(bundleID) grants the entitlement \(name)\(hint) \(advice)")
    }
}

/// A price in thousandths of the currency's unit. Decimal text is converted exactly, without binary fractions.
package struct Milliunits: Sendable, Hashable {
    /// The price in thousandths: 4.99 is 4990.
    package let count: Int64

    private static let wholeDigitsMax = 12

    package init(_ count: Int64) { self.count = count }

    /// Reads digits with an optional fraction, like `4.99`; nil for over 12 whole digits, and parts of a thousandth.
    package init?(decimal text: String) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, (1...Self.wholeDigitsMax).contains(whole.utf8.count), Self.areDigits(whole)
        else { return nil }
        var fraction = parts.count > 1 ? parts[1] : "0"
        guard !fraction.isEmpty, Self.areDigits(fraction) else { return nil }
        while fraction.last == "0" { fraction.removeLast() }
        guard fraction.utf8.count <= 3 else { return nil }
        let padded = fraction + String(repeating: "0", count: 3 - fraction.utf8.count)
        guard let count = Int64(whole + padded) else { return nil }
        self.count = count
    }

    /// The shortest decimal text, with at least two decimals.
    package var decimal: String {
        let (whole, rest) = count.magnitude.quotientAndRemainder(dividingBy: 1_000)
        var decimals = String(String(rest + 1_000).dropFirst())
        if decimals.hasSuffix("0") { decimals.removeLast() }
        return "\(count < 0 ? "-" : "")\(whole).\(decimals)"
    }

    private static func areDigits(_ text: Substring) -> Bool { text.utf8.allSatisfy(\.isDigit) }
}

extension Milliunits: Decodable {
    /// Decodes a price from a JSON number or a string with a decimal.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        var text = ""
        do {
            text = try container.decode(String.self)
        } catch DecodingError.typeMismatch {
            do {
                text = try container.decode(Decimal.self).description
            } catch let error as DecodingError {
                guard case .dataCorrupted = error else { throw error }
            } catch {
                // A number that is too large for the decoder is an error of its own.
            }
        }
        guard let price = Milliunits(decimal: text) else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: container.codingPath,
                    debugDescription: "'\(text)' is no price; write 4.99, with at most 3 decimals",
                    underlyingError: LedgerError(
                        .invalid, "is a price like 4.99, from 0 to 999999999999.999 with at most 3 decimals.")))
        }
        self = price
    }
}
