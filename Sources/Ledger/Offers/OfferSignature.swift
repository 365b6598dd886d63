import Crypto
import Foundation
package import Subscriptions

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
    /// A transaction of the customer.
    let transactionID: String?
    /// A new lower-case UUID.
    let nonce: String
    let signedAt: Instant
}

/// A signed promotional offer, as the app passes it to StoreKit. Apple takes it for 24 hours.
package struct OfferSignature: Sendable, Hashable {
    /// The id of the key that signed it.
    package let keyID: String
    /// A lower-case UUID.
    package let nonce: String
    /// When it was signed.
    package let signedAt: Instant
    /// The account token that the purchase must carry; nil: none.
    package let appAccountToken: String?
    /// The form.
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
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let parts = [
            try encoder.encode(JWSHeader(kid: key.name.id)), try encoder.encode(JWSClaims(terms, issuer: issuer)),
        ]
        let signed = parts.map(\.base64URL).joined(separator: ".")
        return signed + "." + (try key.key.signature(for: Data(signed.utf8)).rawRepresentation.base64URL)
    }
}

private struct JWSHeader: Encodable {
    let alg = "ES256"
    let kid: String
    let typ = "JWT"
}

private struct JWSClaims: Encodable {
    let aud = "promotional-offer"
    let bid: String
    let iat: Int64
    let iss: String
    let nonce: String
    let offerIdentifier: String
    let productId: String
    let transactionId: String?

    init(_ terms: OfferTerms, issuer: String) {
        bid = terms.bundleID.text
        iat = terms.signedAt.milliseconds / 1_000
        iss = issuer
        nonce = terms.nonce
        offerIdentifier = terms.offerID
        productId = terms.productID.text
        transactionId = terms.transactionID
    }
}

extension Data {
    /// Base64 for URLs without padding (RFC 7515, section 2).
    fileprivate var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
