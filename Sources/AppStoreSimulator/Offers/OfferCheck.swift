import Crypto
import Foundation
import Synchronization

extension Simulator {
    /// Answers the control calls that register a public key, for offers or for tokens of the Server API.
    func register(_ body: [UInt8], in keys: RegisteredKeys) throws -> SimulatorReply {
        let wanted = try JSONDecoder().decode(KeyRequest.self, from: Data(body))
        guard !wanted.keyID.isEmpty, !wanted.issuerID.isEmpty else {
            return .refused(400, "key_id and issuer_id are texts that are not empty")
        }
        guard let publicKey = try? P256.Signing.PublicKey(pemRepresentation: wanted.publicKey) else {
            return .refused(400, "public_key is the public key of a pair for P-256, as PEM")
        }
        keys.register(RegisteredKeys.Key(issuerID: wanted.issuerID, publicKey: publicKey), id: wanted.keyID)
        return try .json(["key_id": wanted.keyID, "issuer_id": wanted.issuerID], code: 201)
    }

    /// Answers the control call that asks whether Apple would accept the signature of an offer.
    func judgeOfferSignature(_ body: [UInt8]) throws -> SimulatorReply {
        let (app, now) = (options.bundleID, clock.now)
        let fault: String?
        if let jws = try JSONDecoder().decode(JWSRequest.self, from: Data(body)).jws {
            do throws(ActionRefused) {
                _ = try OfferJWS(jws, by: offerKeys, app: app, at: now)
                fault = nil
            } catch {
                fault = error.description
            }
        } else {
            let signature = try JSONDecoder().decode(OfferSignature.self, from: Data(body))
            fault = signature.fault(by: offerKeys, app: app, at: now)
        }
        return try .json(OfferVerdict(accepted: fault == nil, reason: fault))
    }
}

/// The signature of an offer as the app hands it to the device. Apple knows the other values from the purchase.
package struct HandedSignature: Codable, Sendable {
    /// The id of the key that signed.
    package var keyID: String
    /// A UUID that the server made for this signature.
    package var nonce: String
    /// When the server signed, in milliseconds since 1970.
    package var timestamp: Int64
    /// The signature: ECDSA in the form of DER, in Base64.
    package var signature: String

    enum CodingKeys: String, CodingKey {
        case nonce, timestamp, signature
        case keyID = "key_id"
    }
}

extension Simulator {
    /// Refuses an action whose signature Apple would refuse.
    func checkSignature(of action: CustomerAction, on index: Int) throws(ActionRefused) {
        guard action.signature != nil || action.jws != nil else { return }
        guard action.isPromotional else { throw ActionRefused("only a promotional offer has a signature") }
        guard let account = world.account(index, at: now) else { return }
        let subscription = try account.subscriptionNumber(action)
        let product = action.product ?? account.lives[subscription].head.product
        let productID = product.identifier(in: world.bundleID)
        let offerID = action.offerID ?? PeriodOffer.promotionalOfferID
        if let handed = action.signature {
            let signature = OfferSignature(
                bundleID: world.bundleID, keyID: handed.keyID, productID: productID, offerID: offerID,
                accountToken: action.accountToken?.text, nonce: handed.nonce, timestamp: handed.timestamp,
                signature: handed.signature)
            if let fault = signature.fault(by: offerKeys, app: world.bundleID, at: clock.now) {
                throw ActionRefused("Apple refuses the offer: \(fault)")
            }
        }
        if let jws = action.jws {
            try check(jws, product: productID, offer: offerID, of: account)
        }
    }

    /// Refuses an offer whose JWS Apple would refuse.
    private func check(_ jws: String, product: String, offer: String, of account: Account) throws(ActionRefused) {
        let claims = try OfferJWS(jws, by: offerKeys, app: world.bundleID, at: clock.now)
        switch claims.aud {
        case .promotionalOffer: break
        case .introductoryEligibility: throw ActionRefused("Apple refuses the offer: aud is not promotional-offer")
        }
        guard claims.productId == product, claims.offerIdentifier == offer else {
            throw ActionRefused("Apple refuses the offer: it is for another product or offer")
        }
        guard claims.transactionId.map({ account.hasTransaction($0) }) ?? true else {
            throw ActionRefused("Apple refuses the offer: the transaction is another customer's")
        }
    }
}

extension CustomerAction {
    fileprivate var isPromotional: Bool {
        (kind == .redeemOffer && (offer ?? .promotional) == .promotional)
            || (kind == .resubscribe && offer == .promotional)
    }
}

/// The signature of a promotional offer in the classic form, with the values it signs.
package struct OfferSignature: Codable, Sendable {
    package var bundleID: String
    /// The id of the key that signed.
    package var keyID: String
    package var productID: String
    package var offerID: String
    /// The token of the purchase, if the app passes one; it is then signed as an empty text.
    package var accountToken: String?
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
    private static let separator = "\u{2063}"

    /// The text that Apple's servers put together and check the signature of.
    var signedText: String {
        [bundleID, keyID, productID, offerID, accountToken?.lowercased() ?? "", nonce, String(timestamp)]
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

/// The claims in the signature of an offer as a JWS.
struct OfferJWS: Decodable, Sendable {
    /// What Apple's servers use a JWS for.
    enum Audience: String, Decodable, Sendable {
        case promotionalOffer = "promotional-offer"
        case introductoryEligibility = "introductory-offer-eligibility"
    }

    let iss: String
    /// Seconds since 1970.
    let iat: Int64
    let aud: Audience
    let bid: String
    let nonce: String
    let productId: String
    let offerIdentifier: String?
    let allowIntroductoryOffer: Bool?
    let transactionId: String?
}

extension OfferJWS {
    /// Reads a text in compact form; throws what is wrong when Apple does not accept it.
    init(_ compact: String, by keys: RegisteredKeys, app: String, at now: StoreTime) throws(ActionRefused) {
        let verified: (claims: OfferJWS, key: RegisteredKeys.Key) = try keys.verified(compact[...])
        self = verified.claims
        guard iss == verified.key.issuerID else { throw ActionRefused("iss is not the issuer of the key") }
        guard bid == app else { throw ActionRefused("the store sells another app") }
        guard UUID(uuidString: nonce) != nil, nonce == nonce.lowercased() else {
            throw ActionRefused("the nonce is no UUID in lower case")
        }
        let (issued, overflows) = iat.multipliedReportingOverflow(by: 1000)
        if let stale = RegisteredKeys.staleness(of: overflows ? .max : issued, at: now) { throw ActionRefused(stale) }
        switch aud {
        case .promotionalOffer:
            guard offerIdentifier?.isEmpty == false else { throw ActionRefused("offerIdentifier is missing") }
        case .introductoryEligibility:
            guard allowIntroductoryOffer != nil else { throw ActionRefused("allowIntroductoryOffer is missing") }
            guard transactionId?.isEmpty == false else { throw ActionRefused("transactionId is missing") }
        }
    }
}

extension RegisteredKeys {
    private struct Header: Decodable {
        let alg: String
        let kid: String
        let typ: String
    }

    /// Returns the claims of a JWS in compact form, and the key that signed it; throws what is wrong with it.
    func verified<Claims: Decodable>(_ compact: Substring) throws(ActionRefused) -> (claims: Claims, key: Key) {
        let parts = compact.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw ActionRefused("the JWS has not three parts") }
        let header: Header = try Self.read(parts[0], "header")
        guard header.alg == "ES256" else { throw ActionRefused("alg is not ES256") }
        guard header.typ == "JWT" else { throw ActionRefused("typ is not JWT") }
        guard let key = key(header.kid) else { throw ActionRefused("no key with this kid is registered") }
        let claims: Claims = try Self.read(parts[1], "payload")
        guard let bytes = Data(base64URL: parts[2]), bytes.count == 64,
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: bytes)
        else { throw ActionRefused("the signature is not the 64 bytes of r and s") }
        guard key.publicKey.isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8)) else {
            throw ActionRefused("the signature does not fit header and payload")
        }
        return (claims, key)
    }

    /// Reads header or payload of a JWS.
    private static func read<Value: Decodable>(_ part: Substring, _ name: String) throws(ActionRefused) -> Value {
        guard let bytes = Data(base64URL: part) else { throw ActionRefused("the \(name) is not Base64url") }
        do {
            return try JSONDecoder().decode(Value.self, from: bytes)
        } catch {
            throw ActionRefused("the \(name) lacks a field or has one of another form: \(error)")
        }
    }
}

extension Data {
    /// Reads Base64url without padding, as a JWS has it; nil for any other text.
    init?(base64URL text: Substring) {
        guard !text.utf8.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
        let letters = String(text).replacing("-", with: "+").replacing("_", with: "/")
        self.init(base64Encoded: letters + String(repeating: "=", count: (4 - letters.utf8.count % 4) % 4))
    }
}

/// The public keys with which the store checks signatures of the app's servers, of offers and of tokens, by key id.
final class RegisteredKeys: Sendable {
    struct Key: Sendable {
        let issuerID: String
        let publicKey: P256.Signing.PublicKey
    }

    /// The longest time for which a signature is good.
    static let ageMax: Int64 = 24 * 3_600_000
    /// How far the clock of a server may be ahead.
    static let leadMax: Int64 = 5 * 60_000

    private let keys = Mutex<[String: Key]>([:])

    func register(_ key: Key, id: String) { keys.withLock { $0[id] = key } }

    func key(_ id: String) -> Key? { keys.withLock { $0[id] } }

    /// Returns what is wrong with the time of a signature; nil when it is good.
    static func staleness(of milliseconds: Int64, at now: StoreTime) -> String? {
        if milliseconds < now.milliseconds - ageMax { return "the signature is older than 24 hours" }
        if milliseconds > now.milliseconds + leadMax { return "the signature is of the future" }
        return nil
    }
}

/// The body of `POST /simulator/offer-keys` and of `POST /simulator/server-keys`.
struct KeyRequest: Decodable, Sendable {
    let keyID: String
    let issuerID: String
    let publicKey: String

    enum CodingKeys: String, CodingKey {
        case keyID = "key_id"
        case issuerID = "issuer_id"
        case publicKey = "public_key"
    }
}

/// The body of `POST /simulator/offer-signatures`: a JWS, or else the fields of an ``OfferSignature``.
private struct JWSRequest: Decodable {
    let jws: String?
}

/// The answer to `POST /simulator/offer-signatures`.
struct OfferVerdict: Encodable, Sendable {
    let accepted: Bool
    let reason: String?
}
