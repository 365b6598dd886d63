import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// The name of a key that signs promotional offers.
package struct OfferKeyName: Sendable, Hashable {
    /// The key's id in App Store Connect.
    package let id: String
    /// The issuer of the team's keys; nil: only the classic form can be signed.
    package let issuer: String?

    init(id: String, issuer: String?) {
        (self.id, self.issuer) = (id, issuer)
    }
}

/// A key of App Store Connect that signs promotional offers, in plain text for as long as it is used.
package struct OfferKey: Sendable {
    /// The longest id of a key or an issuer, in characters; Apple's have 10 and 36.
    package static let idCharactersMax = 64
    private static let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")

    /// Its name.
    package let name: OfferKeyName
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
        name = OfferKeyName(id: id, issuer: issuer)
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

extension LedgerApps {
    /// Stores the key that signs an app's promotional offers, in place of an earlier one.
    ///
    /// Throws `notFound` for an unknown app, `invalid` without a master key.
    package func storeOfferKey(_ key: OfferKey, of bundleID: BundleID) async throws {
        let sealed = try requiredSeal().seal(key.key.pemRepresentation, for: Self.offerKeyOwner(bundleID))
        let rows = try await write(
            Queries.storeOfferKey,
            [.text(bundleID.text), .text(key.name.id), .text(key.name.issuer), .bytea(sealed)],
            audited: .offerKeyStored, app: bundleID,
            detail: ["key_id": key.name.id, "issuer_id": key.name.issuer].compactMapValues { $0 })
        if rows.isEmpty { _ = try await app(bundleID) }
    }

    /// Takes an app's offer key away; throws `notFound` where there is none.
    package func removeOfferKey(of bundleID: BundleID) async throws {
        let rows = try await write(
            Queries.removeOfferKey, [.text(bundleID.text)], audited: .offerKeyRemoved, app: bundleID)
        guard rows.isEmpty else { return }
        _ = try await app(bundleID)
        throw LedgerError(.notFound, "\(bundleID) has no offer key.")
    }

    /// Returns an app's offer key, opened; throws `notFound` where there is none.
    func offerKey(of bundleID: BundleID) async throws -> OfferKey {
        guard let row = try await query(Queries.readOfferKey, [.text(bundleID.text)]).first else {
            throw LedgerError(
                .notFound,
                "\(bundleID) has no key to sign offers with; store it with "
                    + "`perennial app offer-key \(bundleID) --key-file FILE --key-id ID`.")
        }
        let pem = try requiredSeal().open(try row.bytea("sealed_key"), for: Self.offerKeyOwner(bundleID))
        return try OfferKey(pem: pem, id: try row.text("key_id"), issuer: try row.textIfPresent("issuer_id"))
    }

    private static func offerKeyOwner(_ bundleID: BundleID) -> String { "offer key of \(bundleID)" }
}
