import Crypto
import Foundation

/// An In-App Purchase key of App Store Connect that signs requests about one app. Printing it never shows the key.
package struct ServerKey: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The key's id in App Store Connect.
    package let id: String
    /// The issuer of the team's keys.
    package let issuer: String
    /// The app.
    package let bundleID: String
    /// The private key as PEM with PKCS#8 of the curve P-256.
    private let pem: String

    /// Creates a key; a text that is no key fails when the first request is signed.
    package init(pem: String, id: String, issuer: String, bundleID: String) {
        (self.pem, self.id, self.issuer, self.bundleID) = (pem, id, issuer, bundleID)
    }

    /// Returns a bearer token that is valid for `ServerToken.lifeSeconds`.
    ///
    /// Apple: "Generating JSON Web Tokens for API requests". It begins a minute ago, because a clock ahead of Apple's
    /// would make Apple refuse it.
    func token(at now: Date) throws -> ServerToken {
        let issuedAt = Int64(now.timeIntervalSince1970) - ServerToken.earlierSeconds
        let header = #"{"alg":"ES256","kid":\#(JSONEscapes.quoted(id)),"typ":"JWT"}"#
        let claims =
            #"{"iss":\#(JSONEscapes.quoted(issuer)),"iat":\#(issuedAt),"#
            + #""exp":\#(issuedAt + ServerToken.earlierSeconds + ServerToken.lifeSeconds),"#
            + #""aud":"appstoreconnect-v1","bid":\#(JSONEscapes.quoted(bundleID))}"#
        let signed = [header, claims].map { Base64URL.encoded(Array($0.utf8)) }.joined(separator: ".")
        let key = try P256.Signing.PrivateKey(pemRepresentation: pem)
        let signature = try key.signature(for: Data(signed.utf8)).rawRepresentation
        return ServerToken(
            text: "\(signed).\(Base64URL.encoded(Array(signature)))",
            endsAt: now.addingTimeInterval(TimeInterval(ServerToken.lifeSeconds)))
    }

    /// A description that is safe to print.
    package var description: String { "ServerKey(\(id) of \(bundleID))" }

    /// A description that is safe to print.
    package var debugDescription: String { description }

    /// A mirror that is safe to dump.
    package var customMirror: Mirror { Mirror(self, children: ["id": id, "bundleID": bundleID]) }
}

/// A bearer token.
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
