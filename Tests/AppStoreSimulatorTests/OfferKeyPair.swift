import Crypto
import Foundation

@testable import AppStoreSimulator

/// A server's key for offers, and the texts it signs, put together byte by byte.
struct OfferKeyPair {
    static let nonce = "0f8fad5b-d9cb-469f-a165-70867728950e"
    static let token = "11111111-1111-4111-8111-111111111111"
    let id: String
    let issuer = "57246542-96fe-1a63-e053-0824d011072a"
    private let key = P256.Signing.PrivateKey()

    init(id: String = "K1") {
        self.id = id
    }

    /// Registers the public half.
    func register(in store: Simulator) throws -> Int {
        let body = ["key_id": id, "issuer_id": issuer, "public_key": key.publicKey.pemRepresentation]
        return try store.control(
            "POST", "/simulator/offer-keys", String(decoding: JSONEncoder().encode(body), as: UTF8.self)
        ).code
    }

    /// The fields of the classic form, signed; `change` alters them after that.
    func classic(
        at milliseconds: Int64 = ManualClock.start, nonce: String = nonce, token: String = token,
        separator: [UInt8] = [0xE2, 0x81, 0xA3], isRaw: Bool = false, change: (inout [String: Any]) -> Void = { _ in }
    ) throws -> [String: Any] {
        let values = [
            "com.example.tracker", id, "com.example.tracker.monthly", "winter50", token, nonce, String(milliseconds),
        ]
        let bytes = values.map { Array($0.utf8) }.joined(separator: separator)
        let signature = try key.signature(for: Data(bytes))
        var fields: [String: Any] = [
            "bundle_id": values[0], "key_id": id, "product_id": values[2], "offer_id": values[3],
            "app_account_token": token, "nonce": nonce, "timestamp": milliseconds,
            "signature": (isRaw ? signature.rawRepresentation : signature.derRepresentation).base64EncodedString(),
        ]
        change(&fields)
        return fields
    }

    /// A compact JWS; `change` alters header and claims before it is signed.
    func jws(
        isDER: Bool = false, change: (inout [String: Any], inout [String: Any]) -> Void = { _, _ in }
    ) throws -> String {
        var header: [String: Any] = ["alg": "ES256", "kid": id, "typ": "JWT"]
        var claims: [String: Any] = [
            "iss": issuer, "iat": ManualClock.start / 1000, "aud": "promotional-offer", "bid": "com.example.tracker",
            "nonce": Self.nonce, "productId": "com.example.tracker.monthly", "offerIdentifier": "winter50",
        ]
        change(&header, &claims)
        let parts = try [header, claims].map { Self.part(try JSONSerialization.data(withJSONObject: $0)) }
        let signed = parts.joined(separator: ".")
        let signature = try key.signature(for: Data(signed.utf8))
        return signed + "." + Self.part(isDER ? signature.derRepresentation : signature.rawRepresentation)
    }

    private static func part(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
