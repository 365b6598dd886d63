import Crypto
import Foundation

/// The signature of an offer as a compact JWS.
struct OfferJWS: Sendable {
    /// What Apple's servers use a JWS for.
    enum Audience: String, Decodable, Sendable {
        case promotionalOffer = "promotional-offer"
        case introductoryEligibility = "introductory-offer-eligibility"
    }

    private struct Header: Decodable {
        let alg: String
        let kid: String
        let typ: String
    }

    struct Claims: Decodable, Sendable {
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

    let compact: String

    /// Returns the claims; throws what is wrong when Apple does not accept it.
    func claims(by keys: RegisteredKeys, app: String, at now: StoreTime) throws(ActionRefused) -> Claims {
        let parts = compact.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw ActionRefused("the JWS has not three parts") }
        let header = try Self.read(Header.self, parts[0], "header")
        guard header.alg == "ES256" else { throw ActionRefused("alg is not ES256") }
        guard header.typ == "JWT" else { throw ActionRefused("typ is not JWT") }
        guard let key = keys.key(header.kid) else { throw ActionRefused("no key with this kid is registered") }
        let claims = try Self.read(Claims.self, parts[1], "payload")
        guard let bytes = Data(base64URL: parts[2]), bytes.count == 64,
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: bytes)
        else { throw ActionRefused("the signature is not the 64 bytes of r and s") }
        guard key.publicKey.isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8)) else {
            throw ActionRefused("the signature does not fit header and payload")
        }
        guard claims.iss == key.issuerID else { throw ActionRefused("iss is not the issuer of the key") }
        guard claims.bid == app else { throw ActionRefused("the store sells another app") }
        guard UUID(uuidString: claims.nonce) != nil, claims.nonce == claims.nonce.lowercased() else {
            throw ActionRefused("the nonce is no UUID in lower case")
        }
        let (issued, overflows) = claims.iat.multipliedReportingOverflow(by: 1000)
        if let stale = RegisteredKeys.staleness(of: overflows ? .max : issued, at: now) { throw ActionRefused(stale) }
        switch claims.aud {
        case .promotionalOffer:
            guard claims.offerIdentifier?.isEmpty == false else { throw ActionRefused("offerIdentifier is missing") }
        case .introductoryEligibility:
            guard claims.allowIntroductoryOffer != nil else {
                throw ActionRefused("allowIntroductoryOffer is missing")
            }
            guard claims.transactionId?.isEmpty == false else { throw ActionRefused("transactionId is missing") }
        }
        return claims
    }

    private static func read<Value: Decodable>(
        _ type: Value.Type, _ part: Substring, _ name: String
    ) throws(ActionRefused) -> Value {
        guard let bytes = Data(base64URL: part) else { throw ActionRefused("the \(name) is not Base64url") }
        do {
            return try JSONDecoder().decode(type, from: bytes)
        } catch {
            throw ActionRefused("the \(name) lacks a field or has one of another form: \(error)")
        }
    }
}

extension Data {
    /// Reads Base64url without padding, as a JWS has it; nil for any other text.
    init?(base64URL text: Substring) {
        guard !text.contains(where: { "+/=".contains($0) }) else { return nil }
        let standard = text.replacing("-", with: "+").replacing("_", with: "/")
        self.init(base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
    }
}
