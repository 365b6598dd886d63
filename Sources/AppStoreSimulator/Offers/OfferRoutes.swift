import Crypto
import Foundation

/// The control calls about keys and the signatures of offers.
extension Simulator {
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

    func judgeOfferSignature(_ body: [UInt8]) throws -> SimulatorReply {
        let app = options.bundleID
        switch try JSONDecoder().decode(OfferSignatureRequest.self, from: Data(body)) {
        case .classic(let signature):
            let fault = signature.fault(by: offerKeys, app: app, at: clock.now)
            return try .json(OfferVerdict(accepted: fault == nil, reason: fault))
        case .jws(let jws):
            do {
                _ = try jws.claims(by: offerKeys, app: app, at: clock.now)
                return try .json(OfferVerdict(accepted: true, reason: nil))
            } catch let refused as ActionRefused {
                return try .json(OfferVerdict(accepted: false, reason: refused.description))
            }
        }
    }
}
