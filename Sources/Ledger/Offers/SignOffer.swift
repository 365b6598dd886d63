import Foundation
import Postgres
import SQL
package import Subscriptions

/// A request to sign a promotional offer for a customer.
package struct OfferRequest: Sendable, Hashable {
    /// The longest id of a product or an offer, in characters.
    package static let idCharactersMax = 255

    /// The operator's own id of the customer.
    package var customer: String
    /// The product of the catalog.
    package var productID: ProductID
    /// The product's offer.
    package var offerID: String
    /// The order that the purchase is to pay; nil: none.
    package var orderID: String?
    /// The form of the signature.
    package var form: OfferForm

    /// Creates a request.
    package init(
        customer: String, productID: ProductID, offerID: String, orderID: String? = nil, form: OfferForm
    ) {
        self.customer = customer
        self.productID = productID
        self.offerID = offerID
        self.orderID = orderID
        self.form = form
    }
}

/// Whether a customer may have a promotional offer.
package enum OfferAnswer: Sendable, Hashable {
    /// The customer may; here is the signature.
    case signed(OfferSignature)
    /// The customer may not, for this reason.
    case refused(OfferRefusal)
}

extension LedgerOffers {
    /// Signs a promotional offer for a customer who may have it. Nothing is written: a redemption counts, a signature does
    /// not.
    ///
    /// Reads from the primary. Throws `notFound` for an unknown app, product, offer or order of the customer, and where no
    /// key is stored; `exists` for an order of another product, or one that is paid; `invalid` for a text that is no id.
    package func sign(_ request: OfferRequest, of bundleID: BundleID) async throws -> OfferAnswer {
        try Upload.requireValidCustomerID(request.customer)
        try ManualDecision.require(
            request.productID.text, "A product id", charactersMax: OfferRequest.idCharactersMax)
        try ManualDecision.require(request.offerID, "An offer id", charactersMax: OfferRequest.idCharactersMax)
        let catalog = try await catalog(of: bundleID, fromPrimary: true)
        let (product, offer) = try Self.find(request, in: catalog, of: bundleID)
        let token = try await accountToken(for: request, of: bundleID)
        let buyer = try await buyer(request.customer, of: bundleID, fromPrimary: true)
        if let refusal = Shop(catalog, for: buyer).refusal(of: offer, for: product) { return .refused(refusal) }
        return .signed(
            try OfferSignature(
                OfferTerms(
                    bundleID: bundleID, productID: product.id, offerID: offer.id, appAccountToken: token,
                    transactionID: buyer.own.first?.transactionID, nonce: UUID().uuidString.lowercased(),
                    signedAt: buyer.now),
                as: request.form, with: try await ledger.apps.offerKey(of: bundleID)))
    }

    private static func find(
        _ request: OfferRequest, in catalog: [CatalogProduct], of bundleID: BundleID
    ) throws(LedgerError) -> (CatalogProduct, PromotionalOffer) {
        guard let product = catalog.first(where: { $0.id == request.productID }) else {
            throw LedgerError(.notFound, "The catalog of \(bundleID) has no product \(request.productID).")
        }
        guard let offer = product.offers.first(where: { $0.id == request.offerID }) else {
            throw LedgerError(
                .notFound, "The catalog of \(bundleID) has no offer \(request.offerID) of \(request.productID).")
        }
        return (product, offer)
    }

    /// Returns the account token of the order that the purchase is to pay; nil without an order.
    private func accountToken(for request: OfferRequest, of bundleID: BundleID) async throws -> String? {
        guard let id = request.orderID else { return nil }
        let whose: [Parameter] = [.text(bundleID.text), .text(request.customer)]
        guard let canonical = LedgerOrders.canonical(id),
            let row = try await query(Queries.readOrderToken, whose + [.text(canonical)]).first
        else { throw LedgerError(.notFound, "The customer has no order \(id).") }
        let product = try row.text("product_id")
        guard product == request.productID.text else {
            throw LedgerError(.exists, "The order \(id) is for \(product), not for \(request.productID).")
        }
        guard try row.bool("is_paid") == false else {
            throw LedgerError(.exists, "The order \(id) is paid already; place another one.")
        }
        return try row.text("app_account_token")
    }
}
