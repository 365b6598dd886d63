import Postgres
import SQL
package import Subscriptions

extension LedgerApps {
    /// Replaces the whole catalog of an app with the given products; earlier grants remain true for the time before
    /// now.
    ///
    /// Throws `invalid` for an empty entitlement name, `notFound` for an unknown app.
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
            guard let row = try transaction.query(Queries.lockCatalog, [.text(bundleID.text)]).first else { return }
            let app = Parameter.int4(try row.int4("app_id"))
            // Read under the lock, so that of two catalogs the one applied later also has the later time.
            guard let clock = try transaction.query(Queries.readClock).first else { return }
            let recordedAt = Parameter.timestamptz(
                microseconds: max(
                    try clock.timestamptz("recorded_at"), try row.timestamptz("catalog_changed_at") + 1))
            let granted = [app, .texts(grants.map(\.product)), .texts(grants.map(\.entitlement)), recordedAt]
            let begun = try transaction.query(Queries.insertGrants, granted)
            let ended = try transaction.query(Queries.endGrants, granted)
            let redefined = try transaction.query(
                Queries.recordTerms,
                [
                    app, recordedAt, .texts(products.map(\.id.text)), .texts(products.map(\.kind?.rawValue)),
                    .texts(products.map(\.period)),
                ])
            if !begun.isEmpty || !ended.isEmpty || !redefined.isEmpty {
                try transaction.query(Queries.changeCatalog, [app, recordedAt])
            }
            try replace(products, of: app, in: transaction)
            try transaction.query(Queries.requestRelease, [app])
            try ledger.audit(
                .catalogApplied, app: bundleID, detail: ["products": "\(products.count)"], in: transaction)
        }
    }

    private func replace(_ products: [CatalogProduct], of app: Parameter, in transaction: Transaction) throws {
        try transaction.query(Queries.deleteProducts, [app, .texts(products.map(\.id.text))])
        try transaction.query(
            Queries.upsertProducts,
            [
                app, .texts(products.map(\.id.text)), .texts(products.map(\.group)), .int4s(products.map(\.level)),
                .texts(products.map(\.period)), .int8s(products.map(\.priceMilliunits)),
                .texts(products.map(\.currency)), .texts(products.map(\.kind?.rawValue)),
                .texts(products.map(\.credit?.name)), .int4s(products.map(\.credit?.units)),
                .instants(products.map(\.deliversSince)), .texts(products.map(\.slot?.name)),
                .int4s(products.map(\.slot?.place)),
            ])
        let offers = products.flatMap { product in product.offers.map { (product: product.id.text, offer: $0) } }
        try transaction.query(
            Queries.replaceOffers,
            [
                app, .texts(offers.map(\.product)), .texts(offers.map(\.offer.id)),
                .texts(offers.map { $0.offer.audience.map(\.rawValue).joined(separator: ",") }),
                .instants(offers.map(\.offer.from)), .instants(offers.map(\.offer.until)),
                .bools(offers.map(\.offer.once)),
            ])
    }

    /// Returns the catalog of an app as it applies now; throws `notFound` for an unknown app.
    package func catalog(of bundleID: BundleID) async throws -> [CatalogProduct] {
        _ = try await app(bundleID)
        return try await database.transaction { transaction in
            try CatalogProduct.all(
                try transaction.query(Queries.listProducts, [.text(bundleID.text)]),
                offers: try transaction.query(Queries.listOffers, [.text(bundleID.text)]))
        }
    }
}

extension CatalogProduct {
    /// Returns the products of rows, each with its offers.
    static func all(_ products: [Row], offers: [Row]) throws -> [CatalogProduct] {
        let offers = try offers.reduce(into: [String: [PromotionalOffer]]()) { offers, row in
            offers[try row.text("product_id"), default: []].append(try PromotionalOffer(row: row))
        }
        return try products.map { row in
            var product = try CatalogProduct(row: row)
            product.offers = offers[product.id.text] ?? []
            return product
        }
    }

    private init(row: Row) throws {
        id = ProductID(try row.text("product_id"))
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
    }
}

extension PromotionalOffer {
    fileprivate init(row: Row) throws {
        id = try row.text("offer_id")
        audience = try row.texts("audience").compactMap(Audience.init(rawValue:))
        from = try row.instantIfPresent("starts")
        until = try row.instantIfPresent("ends")
        once = try row.bool("once")
    }
}
