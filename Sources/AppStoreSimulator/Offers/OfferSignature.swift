import Crypto
import Foundation

/// The signature of a promotional offer in the classic form, with the values it signs.
package struct OfferSignature: Codable, Sendable {
    /// The app.
    package var bundleID: String
    /// The id of the key that signed.
    package var keyID: String
    /// The product of the offer.
    package var productID: String
    /// The offer.
    package var offerID: String
    /// The token of the purchase; empty when the app passes none.
    package var accountToken: String
    /// A UUID that the server made for this signature.
    package var nonce: String
    /// When the server signed, in milliseconds since 1970.
    package var timestamp: Int64
    /// The signature: ECDSA in the form of DER, in Base64.
    package var signature: String

    enum CodingKeys: String, CodingKey {
        case nonce, timestamp, signature
        case bundleID = "bundle_id"
        case keyID = "key_id"
        case productID = "product_id"
        case offerID = "offer_id"
        case accountToken = "app_account_token"
    }
}

extension OfferSignature {
    /// Reads the fields; an absent token is the empty one.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        bundleID = try values.decode(String.self, forKey: .bundleID)
        keyID = try values.decode(String.self, forKey: .keyID)
        productID = try values.decode(String.self, forKey: .productID)
        offerID = try values.decode(String.self, forKey: .offerID)
        accountToken = try values.decodeIfPresent(String.self, forKey: .accountToken) ?? ""
        nonce = try values.decode(String.self, forKey: .nonce)
        timestamp = try values.decode(Int64.self, forKey: .timestamp)
        signature = try values.decode(String.self, forKey: .signature)
    }

    private static let separator = "\u{2063}"

    /// The text that Apple's servers put together and check the signature of.
    var signedText: String {
        [bundleID, keyID, productID, offerID, accountToken.lowercased(), nonce, String(timestamp)]
            .joined(separator: Self.separator)
    }

    /// Returns what is wrong with it; nil when Apple accepts it.
    func fault(by keys: RegisteredKeys, app: String, at now: StoreTime) -> String? {
        guard bundleID == app else { return "the store sells another app" }
        guard let key = keys.key(keyID) else { return "no key with this id is registered" }
        guard UUID(uuidString: nonce) != nil else { return "the nonce is no UUID" }
        guard nonce == nonce.lowercased() else { return "the nonce is not in lower case" }
        if let stale = RegisteredKeys.staleness(of: timestamp, at: now) { return stale }
        guard let bytes = Data(base64Encoded: signature) else { return "the signature is not Base64" }
        guard let parsed = try? P256.Signing.ECDSASignature(derRepresentation: bytes) else {
            return "the signature is not in the form of DER"
        }
        guard key.publicKey.isValidSignature(parsed, for: Data(signedText.utf8)) else {
            return "the signature does not fit these values in their order"
        }
        return nil
    }
}
