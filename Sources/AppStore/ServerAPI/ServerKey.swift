import Crypto
import Foundation
import JSON
import Subscriptions
import Synchronization

/// An In-App Purchase key of App Store Connect that signs requests about one app. Printing it never shows the key.
package struct ServerKey: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// The key's id in App Store Connect.
    package let id: String
    /// The issuer of the team's keys.
    package let issuer: String
    package let bundleID: String
    /// The private key as PEM with PKCS#8 of the curve P-256.
    private let pem: String

    /// Creates a key; a text that is no key fails when the first request is signed.
    package init(pem: String, id: String, issuer: String, bundleID: String) {
        (self.pem, self.id, self.issuer, self.bundleID) = (pem, id, issuer, bundleID)
    }

    /// Returns a bearer token (Apple: "Generating JSON Web Tokens for API requests"). It begins a minute ago, because
    /// Apple refuses one that begins later than its own clock.
    func token(at now: Date) throws -> ServerToken {
        let issuedAt = Int64(now.timeIntervalSince1970) - ServerToken.earlierSeconds
        let header: JSONValue = ["alg": "ES256", "kid": .string(id), "typ": "JWT"]
        let claims: JSONValue = [
            "iss": .string(issuer), "iat": .integer(issuedAt),
            "exp": .integer(issuedAt + ServerToken.earlierSeconds + ServerToken.lifeSeconds),
            "aud": "appstoreconnect-v1", "bid": .string(bundleID),
        ]
        return ServerToken(
            text: try CompactText.signed(header, claims, with: P256.Signing.PrivateKey(pemRepresentation: pem)),
            endsAt: now.addingTimeInterval(TimeInterval(ServerToken.lifeSeconds)))
    }

    /// A description that is safe to print.
    package var description: String { "ServerKey(\(id) of \(bundleID))" }

    /// A mirror that is safe to dump.
    package var customMirror: Mirror { Mirror(self, children: ["id": id, "bundleID": bundleID]) }
}

struct ServerToken: Sendable {
    /// How long it is valid, in seconds.
    static let lifeSeconds: Int64 = 300
    /// How much earlier it begins than it is made, in seconds.
    static let earlierSeconds: Int64 = 60
    /// How long before its end it is renewed, in seconds.
    static let renewalSeconds = 30.0

    let text: String
    let endsAt: Date
}

/// The bearer tokens of a process, and where each key was accepted.
final class ServerTokens: Sendable {
    /// The most keys that are remembered; there is one for each app.
    static let keysMax = 1_024

    private struct Memory {
        var tokens: [ServerKey: ServerToken] = [:]
        var accepted: [ServerKey: Set<StoreEnvironment>] = [:]
    }

    private let memory = Mutex(Memory())

    /// Returns a token that is valid for a while; makes one where there is none, or where `isFresh`.
    func token(of key: ServerKey, isFresh: Bool = false, at now: Date = Date()) throws -> String {
        let known = memory.withLock { $0.tokens[key] }
        if !isFresh, let known, known.endsAt.timeIntervalSince(now) > ServerToken.renewalSeconds { return known.text }
        let token = try key.token(at: now)
        memory.withLock { memory in
            if memory.tokens.count >= Self.keysMax { memory.tokens = [:] }
            memory.tokens[key] = token
        }
        return token.text
    }

    /// Notes that Apple accepted a key of ours.
    func noteAccepted(_ key: ServerKey, in environment: StoreEnvironment) {
        memory.withLock { memory in
            if memory.accepted.count >= Self.keysMax { memory.accepted = [:] }
            memory.accepted[key, default: []].insert(environment)
        }
    }

    func isAccepted(_ key: ServerKey, in environment: StoreEnvironment) -> Bool {
        memory.withLock { $0.accepted[key]?.contains(environment) ?? false }
    }
}

/// The addresses and limits for asking the App Store Server API.
package struct ServerAPIOptions: Sendable {
    package static let appleProductionURL = "https://api.storekit.apple.com"
    package static let appleSandboxURL = "https://api.storekit-sandbox.apple.com"

    /// The address for production, without a path at the end.
    package var productionURL: String
    /// The address for the sandbox, without a path at the end.
    package var sandboxURL: String
    /// The limit for one check with all its calls. What is left of a history is read by the next check.
    package var deadline: Duration
    /// The largest answer read, in bytes. A page of Apple's has some 110 kB.
    static let responseBytesMax = 8 << 20
    /// The most pages of a history that one check reads. A page has 20 transactions.
    var pagesMax = 50

    /// Creates options with the suggested limits.
    package init(productionURL: String, sandboxURL: String, deadline: Duration) {
        (self.productionURL, self.sandboxURL, self.deadline) = (productionURL, sandboxURL, deadline)
    }

    func url(of environment: StoreEnvironment, _ path: String) -> String {
        switch environment {
        case .production: Self.joined(productionURL, path)
        case .sandbox: Self.joined(sandboxURL, path)
        }
    }

    static func joined(_ base: String, _ path: String) -> String {
        (base.hasSuffix("/") ? String(base.dropLast()) : base) + path
    }
}
