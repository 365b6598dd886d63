import Crypto
import Foundation

/// The bearer token of a call of the App Store Server API ("Generating JSON Web Tokens for API requests").
struct ServerToken: Sendable {
    private struct Header: Decodable {
        let alg: String
        let kid: String
        let typ: String
    }

    private struct Claims: Decodable {
        let iss: String
        /// Seconds since 1970, as `exp`.
        let iat: Double
        let exp: Double
        let aud: String
        let bid: String
    }

    /// The longest time between `iat` and `exp`.
    private static let lifeSecondsMax = 3600.0

    /// The value of the header `Authorization`.
    let authorization: String?

    /// Returns whether Apple admits it for an app now.
    func isGood(for app: String, by keys: RegisteredKeys, at now: StoreTime) -> Bool {
        let words = (authorization ?? "").split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bearer" else { return false }
        let parts = words[1].split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.read(Header.self, parts[0]), header.alg == "ES256",
            header.typ == "JWT", let key = keys.key(header.kid), let claims = Self.read(Claims.self, parts[1]),
            let bytes = Data(base64URL: parts[2]),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: bytes),
            key.publicKey.isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8))
        else { return false }
        let seconds = Double(now.milliseconds) / 1000
        return claims.iss == key.issuerID && claims.bid == app && claims.aud == "appstoreconnect-v1"
            && claims.iat <= seconds && claims.exp > seconds && claims.exp - claims.iat <= Self.lifeSecondsMax
    }

    private static func read<Value: Decodable>(_ type: Value.Type, _ part: Substring) -> Value? {
        Data(base64URL: part).flatMap { try? JSONDecoder().decode(type, from: $0) }
    }
}
