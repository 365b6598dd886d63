import Crypto
import Foundation
import Synchronization

/// The public keys with which the store checks signatures of the app's servers, by key id.
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
    /// The public key as PEM.
    let publicKey: String

    enum CodingKeys: String, CodingKey {
        case keyID = "key_id"
        case issuerID = "issuer_id"
        case publicKey = "public_key"
    }
}

/// The body of `POST /simulator/offer-signatures`: a JWS, or the fields of the classic form.
enum OfferSignatureRequest: Decodable, Sendable {
    case classic(OfferSignature)
    case jws(OfferJWS)

    private enum CodingKeys: String, CodingKey {
        case jws
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        if let compact = try values.decodeIfPresent(String.self, forKey: .jws) {
            self = .jws(OfferJWS(compact: compact))
        } else {
            self = .classic(try OfferSignature(from: decoder))
        }
    }
}

/// The answer to `POST /simulator/offer-signatures`.
struct OfferVerdict: Encodable, Sendable {
    let accepted: Bool
    /// What is wrong.
    let reason: String?
}
