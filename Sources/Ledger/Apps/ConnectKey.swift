import Crypto
import Foundation

/// The name of a key of App Store Connect: one that signs promotional offers, or requests to the Server API.
package struct ConnectKeyName: Sendable, Hashable {
    /// The key's id in App Store Connect.
    package let id: String
    /// The issuer of the team's keys; nil: only the classic form of an offer can be signed.
    package let issuer: String?

    init(id: String, issuer: String?) {
        (self.id, self.issuer) = (id, issuer)
    }
}

/// A key of App Store Connect, in plain text for as long as it is used.
package struct ConnectKey: Sendable {
    /// The longest id of a key or an issuer, in characters; Apple's have 10 and 36.
    package static let idCharactersMax = 64
    private static let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")

    /// Its name.
    package let name: ConnectKeyName
    let key: P256.Signing.PrivateKey

    /// Reads a key from the text of its `.p8` file: PEM with PKCS#8 of the curve P-256.
    ///
    /// Throws `invalid` for anything else, and for an id that is none. The error never repeats the text.
    package init(pem: String, id: String, issuer: String? = nil) throws(LedgerError) {
        try Self.require(id, "A key id")
        if let issuer { try Self.require(issuer, "An issuer id") }
        let text = pem.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.hasPrefix(Self.begin), text.hasSuffix(Self.end), text.count > Self.begin.count + Self.end.count,
            let der = Data(
                base64Encoded: text.dropFirst(Self.begin.count).dropLast(Self.end.count).filter { !$0.isWhitespace })
        else { throw Self.isNoKey }
        // The reader of PEM wants lines of 64 characters; a file may have been wrapped anew.
        let body = der.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        do {
            key = try P256.Signing.PrivateKey(pemRepresentation: [Self.begin, body, Self.end].joined(separator: "\n"))
        } catch {
            throw Self.isNoKey
        }
        name = ConnectKeyName(id: id, issuer: issuer)
    }

    private static let isNoKey = LedgerError(
        .invalid,
        "This is no private key of the curve P-256 in PKCS#8; give the .p8 file as App Store Connect makes it.")

    private static func require(_ id: String, _ what: String) throws(LedgerError) {
        let isPlain = id.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isPlain, (1...idCharactersMax).contains(id.utf8.count) else {
            throw LedgerError(
                .invalid, "\(what) has 1 to \(idCharactersMax) letters, digits, hyphens and underscores.")
        }
    }
}
