import AppStore
import Crypto
import Foundation
import JSON
import Postgres
import SQL
package import Subscriptions

/// Whether a customer may have a promotional offer.
package enum OfferAnswer: Sendable, Hashable {
    /// The customer may; here is the signature.
    case signed(OfferSignature)
    /// The customer may not, for this reason.
    case refused(OfferRefusal)
}

extension LedgerOffers {
    /// The longest id of a product or an offer, in characters.
    private static let idCharactersMax = 255

    /// Signs a promotional offer for a customer who may have it; `order` is what the purchase is to pay. Nothing is
    /// written: only a redemption counts.
    ///
    /// Reads from the primary. Throws `unknownApp` for an unknown app; `notFound` for an unknown product, offer or order of
    /// the customer, and where no key is stored; `exists` for an order of another product, or one that is paid; `invalid`
    /// for a text that is no id.
    package func sign(
        _ offerID: String, of productID: ProductID, for customer: String, order: String? = nil, as form: OfferForm,
        app bundleID: BundleID
    ) async throws -> OfferAnswer {
        try Upload.requireValidCustomerID(customer)
        try ManualDecision.require(productID.text, "A product id", charactersMax: Self.idCharactersMax)
        try ManualDecision.require(offerID, "An offer id", charactersMax: Self.idCharactersMax)
        let catalog = try await catalog(of: bundleID, fromPrimary: true)
        guard let product = catalog.first(where: { $0.id == productID }) else {
            throw LedgerError(.notFound, "The catalog of \(bundleID) has no product \(productID).")
        }
        guard let offer = product.offers.first(where: { $0.id == offerID }) else {
            throw LedgerError(.notFound, "The catalog of \(bundleID) has no offer \(offerID) of \(productID).")
        }
        let token: String? =
            if let order { try await accountToken(of: order, by: customer, for: productID, in: bundleID) } else { nil }
        let buyer = try await buyer(customer, of: bundleID, fromPrimary: true)
        if let refusal = Shop(catalog, for: buyer).refusal(of: offer, for: product) { return .refused(refusal) }
        return .signed(
            try OfferSignature(
                OfferTerms(
                    bundleID: bundleID, productID: product.id, offerID: offer.id, appAccountToken: token,
                    transactionID: buyer.own.first?.transactionID, nonce: UUID().uuidString.lowercased(),
                    signedAt: buyer.now),
                as: form, with: try await ledger.apps.offerKey(of: bundleID)))
    }

    /// Returns the account token of the order that the purchase is to pay.
    private func accountToken(
        of id: String, by customer: String, for productID: ProductID, in bundleID: BundleID
    ) async throws -> String {
        let whose: [Parameter] = [.text(bundleID.text), .text(customer)]
        guard let canonical = LedgerOrders.canonical(id),
            let row = try await query(Queries.readOrderToken, whose + [.text(canonical)]).first
        else { throw LedgerError(.notFound, "The customer has no order \(id).") }
        let product = try row.text("product_id")
        guard product == productID.text else {
            throw LedgerError(.exists, "The order \(id) is for \(product), not for \(productID).")
        }
        guard try row.bool("is_paid") == false else {
            throw LedgerError(.exists, "The order \(id) is paid already; place another one.")
        }
        return try row.text("app_account_token")
    }
}

/// A form in which Apple takes signatures of promotional offers.
package enum OfferForm: String, Sendable, CaseIterable {
    /// Seven values and their signature in DER, for StoreKit 1 and the early StoreKit 2.
    case classic
    /// A compact JWS.
    case jws
}

/// What a signature of a promotional offer is about.
struct OfferTerms: Sendable {
    let bundleID: BundleID
    let productID: ProductID
    let offerID: String
    /// The order that the purchase is to pay, by its account token.
    let appAccountToken: String?
    let transactionID: String?
    /// A new lower-case UUID.
    let nonce: String
    let signedAt: Instant
}

/// A signed promotional offer, as the app passes it to StoreKit. Apple takes it for 24 hours.
package struct OfferSignature: Sendable, Hashable {
    package let keyID: String
    package let nonce: String
    package let signedAt: Instant
    /// The account token that the purchase must carry; nil: none.
    package let appAccountToken: String?
    package let form: OfferForm
    /// The signature in Base64, or the whole JWS.
    package let text: String

    init(_ terms: OfferTerms, as form: OfferForm, with key: ConnectKey) throws {
        keyID = key.name.id
        nonce = terms.nonce
        signedAt = terms.signedAt
        appAccountToken = terms.appAccountToken
        self.form = form
        text =
            switch form {
            case .classic: try Self.classic(terms, with: key)
            case .jws: try Self.jws(terms, with: key)
            }
    }

    /// Apple: "Generating a signature for promotional offers".
    private static func classic(_ terms: OfferTerms, with key: ConnectKey) throws -> String {
        let values = [
            terms.bundleID.text, key.name.id, terms.productID.text, terms.offerID,
            terms.appAccountToken?.lowercased() ?? "", terms.nonce, "\(terms.signedAt.milliseconds)",
        ]
        let message = Data(values.joined(separator: "\u{2063}").utf8)
        return try key.key.signature(for: message).derRepresentation.base64EncodedString()
    }

    /// Apple: "Generating JWS to sign App Store requests".
    private static func jws(_ terms: OfferTerms, with key: ConnectKey) throws -> String {
        guard let issuer = key.name.issuer else {
            throw LedgerError(
                .notFound,
                "The offer key of \(terms.bundleID) has no issuer, which the form jws needs; store it again with "
                    + "`perennial app offer-key \(terms.bundleID) --key-file FILE --key-id ID --issuer-id ISSUER`.")
        }
        let header: JSONValue = ["alg": "ES256", "kid": .string(key.name.id), "typ": "JWT"]
        let claims = JSONValue.known([
            "aud": "promotional-offer", "bid": .string(terms.bundleID.text),
            "iat": .integer(terms.signedAt.milliseconds / 1_000), "iss": .string(issuer), "nonce": .string(terms.nonce),
            "offerIdentifier": .string(terms.offerID), "productId": .string(terms.productID.text),
            "transactionId": .optional(terms.transactionID),
        ])
        return try CompactText.signed(header, claims, with: key.key)
    }
}
