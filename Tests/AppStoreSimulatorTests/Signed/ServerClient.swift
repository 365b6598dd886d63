import Crypto
import Foundation

@testable import AppStoreSimulator

/// An app's server, which calls the App Store Server API with a key of its own.
struct ServerClient {
    struct Answer {
        let code: Int
        let headers: [String: String]
        let body: [UInt8]

        var json: [String: Any] {
            (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
        }
        var errorCode: Int? { json["errorCode"] as? Int }
        /// The claims of the texts of a page.
        var transactions: [[String: Any]] {
            (json["signedTransactions"] as? [String] ?? []).map { SignedClaims.of($0) }
        }
    }

    static let issuer = "57246542-96fe-1a63-e053-0824d011072a"
    let store: Simulator
    let hand: ManualClock
    private let key = P256.Signing.PrivateKey()

    /// A server whose key is registered.
    init(_ store: Simulator, _ hand: ManualClock) throws {
        self.store = store
        self.hand = hand
        let body = ["key_id": "S1", "issuer_id": Self.issuer, "public_key": key.publicKey.pemRepresentation]
        _ = try store.control(
            "POST", "/simulator/server-keys", String(decoding: JSONEncoder().encode(body), as: UTF8.self))
    }

    /// One call with a good token; `path` is that below `/inApps/`.
    func call(
        _ method: String, _ path: String, _ body: String = "", at environment: StoreEnvironment = .production
    ) throws -> Answer {
        try call(method, path, body, at: environment, authorization: "Bearer " + token())
    }

    /// One call with any header.
    func call(
        _ method: String, _ path: String, _ body: String = "", at environment: StoreEnvironment = .production,
        authorization: String?
    ) throws -> Answer {
        let prefix = environment == .production ? "/inApps/" : "/sandbox/inApps/"
        let reply = store.respond(
            to: SimulatorRequest(
                method: method, path: prefix + path, body: Array(body.utf8), authorization: authorization))
        return Answer(
            code: reply.code, headers: Dictionary(reply.headers.map { ($0.name, $0.value) }) { $1 }, body: reply.body)
    }

    /// All pages of a history, in the order given.
    func pages(_ path: String, at environment: StoreEnvironment = .production) throws -> [Answer] {
        var pages = [try call("GET", path, at: environment)]
        while pages.last?.json["hasMore"] as? Bool == true, let revision = pages.last?.json["revision"] as? String {
            let next = path + (path.contains("?") ? "&" : "?") + "revision=" + revision.escaped
            pages.append(try call("GET", next, at: environment))
        }
        return pages
    }

    /// A token; `change` alters header and claims before it is signed.
    func token(change: (inout [String: Any], inout [String: Any]) -> Void = { _, _ in }) throws -> String {
        let now = store.clock.now.milliseconds / 1000
        var header: [String: Any] = ["alg": "ES256", "kid": "S1", "typ": "JWT"]
        var claims: [String: Any] = [
            "iss": Self.issuer, "iat": now - 60, "exp": now + 240, "aud": "appstoreconnect-v1",
            "bid": "com.example.tracker",
        ]
        change(&header, &claims)
        let parts = try [header, claims].map { try JSONSerialization.data(withJSONObject: $0).base64URL }
        let signed = parts.joined(separator: ".")
        return signed + "." + (try key.signature(for: Data(signed.utf8)).rawRepresentation.base64URL)
    }
}

/// The claims of signed texts.
enum SignedClaims {
    static func of(_ text: String) -> [String: Any] {
        let parts = text.split(separator: ".")
        guard parts.count == 3, let payload = Data(base64URL: parts[1]) else { return [:] }
        return (try? JSONSerialization.jsonObject(with: payload)) as? [String: Any] ?? [:]
    }
}

extension Data {
    var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}

extension String {
    /// The text as a value of a query.
    var escaped: String { addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? self }
}
