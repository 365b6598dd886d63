import Postgres
import SQL
package import Subscriptions

/// One product of an app's catalog.
package struct CatalogProduct: Sendable, Hashable {
    /// The product.
    package var id: ProductID
    /// Its subscription group.
    package var group: String?
    /// Its level in the group; 1 is the highest, as in App Store Connect.
    package var level: Int32?
    /// Its period as an ISO 8601 duration, such as P1M.
    package var period: String?
    /// Its price in thousandths of the currency's unit.
    package var priceMilliunits: Int64?
    /// The currency of the price.
    package var currency: String?
    /// The entitlements it grants.
    package var entitlements: [String]

    /// Creates a product.
    package init(
        id: ProductID, group: String? = nil, level: Int32? = nil, period: String? = nil, priceMilliunits: Int64? = nil,
        currency: String? = nil, entitlements: [String]
    ) {
        self.id = id
        self.group = group
        self.level = level
        self.period = period
        self.priceMilliunits = priceMilliunits
        self.currency = currency
        self.entitlements = entitlements
    }
}

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
            if !begun.isEmpty || !ended.isEmpty { try transaction.query(Queries.changeCatalog, [app, recordedAt]) }
            try transaction.query(Queries.deleteProducts, [app, .texts(products.map(\.id.text))])
            try transaction.query(
                Queries.upsertProducts,
                [
                    app, .texts(products.map(\.id.text)), .texts(products.map(\.group)), .int4s(products.map(\.level)),
                    .texts(products.map(\.period)), .int8s(products.map(\.priceMilliunits)),
                    .texts(products.map(\.currency)),
                ])
            try ledger.audit(
                .catalogApplied, app: bundleID, detail: ["products": "\(products.count)"], in: transaction)
        }
    }

    /// Returns the catalog of an app as it applies now; throws `notFound` for an unknown app.
    package func catalog(of bundleID: BundleID) async throws -> [CatalogProduct] {
        _ = try await app(bundleID)
        return try await query(Queries.listProducts, [.text(bundleID.text)]).map { row in
            CatalogProduct(
                id: ProductID(try row.text("product_id")), group: try row.textIfPresent("group_id"),
                level: try row.int4IfPresent("level"), period: try row.textIfPresent("period"),
                priceMilliunits: try row.int8IfPresent("price_milliunits"), currency: try row.textIfPresent("currency"),
                entitlements: try row.texts("entitlements"))
        }
    }
}
