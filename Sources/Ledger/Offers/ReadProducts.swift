import Postgres
import SQL
package import Subscriptions

extension LedgerOffers {
    /// Returns what an app offers a customer on a device, in the order of the product ids.
    ///
    /// Without a customer, and for an unknown one, it returns what a newcomer is offered; nothing is written. Throws
    /// `notFound` for an unknown app, `invalid` for a text that is no customer's or device's id.
    package func products(
        for customer: String?, on device: String?, of bundleID: BundleID
    ) async throws -> [ProductOnOffer] {
        if let customer { try Upload.requireValidCustomerID(customer) }
        if let device { try OrderRequest.requireValidDevice(device) }
        let hash = try device.map { device in
            guard let seal = ledger.seal else { throw LedgerError(.mismatch, "Devices need PERENNIAL_MASTER_KEY.") }
            return try seal.hash(device: device, of: bundleID)
        }
        async let catalog = catalog(of: bundleID, fromPrimary: false)
        let buyer = try await buyer(customer, deviceHash: hash, of: bundleID, fromPrimary: false)
        return Shop(try await catalog, for: buyer).productsOnOffer
    }

    /// Returns the catalog of an app; an unknown app has none.
    func catalog(of bundleID: BundleID, fromPrimary: Bool) async throws -> [CatalogProduct] {
        let app: [Parameter] = [.text(bundleID.text)]
        async let offers = read(Queries.listOffers, app, fromPrimary: fromPrimary)
        return try CatalogProduct.all(
            try await read(Queries.listProducts, app, fromPrimary: fromPrimary), offers: try await offers)
    }

    /// Returns what counts for what a customer is offered; throws `notFound` for an unknown app.
    func buyer(
        _ customer: String?, deviceHash: [UInt8]? = nil, of bundleID: BundleID, fromPrimary: Bool
    ) async throws -> Buyer {
        let rows = try await read(
            Queries.readBuyer,
            [.text(bundleID.text), .text(customer), .bytea(deviceHash), .int4(Buyer.holdingsMax)],
            fromPrimary: fromPrimary)
        guard let buyer = try Buyer(rows: rows) else {
            throw LedgerError(.notFound, "No app has the bundle id \(bundleID); add it with `perennial app add`.")
        }
        return buyer
    }

    private func read(_ file: SQLFile, _ parameters: [Parameter], fromPrimary: Bool) async throws -> [Row] {
        fromPrimary ? try await query(file, parameters) : try await reads.query(file, parameters)
    }
}
