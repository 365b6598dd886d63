import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// The name of a key of App Store Connect: one that signs promotional offers, or requests to the Server API.
package struct ConnectKeyName: Sendable, Hashable {
    package let id: String
    /// The issuer of the team's keys; nil: only the classic form of an offer can be signed.
    package let issuer: String?
}

/// A key of App Store Connect, in plain text for as long as it is used.
package struct ConnectKey: Sendable {
    /// The longest id of a key or an issuer, in characters; Apple's have 10 and 36.
    package static let idCharactersMax = 64
    private static let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")

    package let name: ConnectKeyName
    let key: P256.Signing.PrivateKey

    /// Reads a key from the text of its `.p8` file: PEM with PKCS#8 of the curve P-256. Throws `invalid` for anything
    /// else, and for an id that is none; the error never repeats the text.
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
        } catch { throw Self.isNoKey }
        name = ConnectKeyName(id: id, issuer: issuer)
    }

    private static let isNoKey = LedgerError(
        .invalid,
        "This is no private key of the curve P-256 in PKCS#8; give the .p8 file as App Store Connect makes it.")

    private static func require(_ id: String, _ what: String) throws(LedgerError) {
        let isPlain = id.utf8.allSatisfy {
            $0.isDigit || $0.isLetter || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
        }
        guard isPlain, (1...idCharactersMax).contains(id.utf8.count) else {
            throw LedgerError(.invalid, "\(what) has 1 to \(idCharactersMax) letters, digits, hyphens and underscores.")
        }
    }
}

/// An app's server key as text, for the duration of a check.
package struct ServerKeyText: Sendable {
    package let name: ConnectKeyName
    package let pem: String

    /// Returns the sentence for an app that has none.
    static func missing(of bundleID: BundleID) -> String {
        "\(bundleID) has no key for the Server API; store it with `perennial app server-key --app \(bundleID)`."
    }
}

extension LedgerApps {
    /// Stores the key that signs an app's requests to the Server API, in place of an earlier one; a pause because Apple
    /// refused that one ends. Workers take up what only the Server API can be asked about, and no receipt polls. Throws
    /// `unknownApp` for an unknown app, `invalid` without a master key or an issuer.
    package func storeServerKey(_ key: ConnectKey, of bundleID: BundleID) async throws {
        guard let issuer = key.name.issuer else {
            throw LedgerError(
                .invalid, "A server key needs its issuer id, which stands above the keys in App Store Connect.")
        }
        let sealed = try requiredSeal().seal(key.key.pemRepresentation, for: Self.serverKeyOwner(bundleID))
        let name = key.name.id
        let stored = try await ledger.changingPollers { transaction -> Bool in
            let rows = try transaction.query(
                Queries.storeServerKey, .text(bundleID.text), .text(name), .text(issuer), .bytea(sealed))
            guard !rows.isEmpty else { return false }
            try ledger.audit(
                .serverKeyStored, app: bundleID, detail: ["key_id": name, "issuer_id": issuer], in: transaction)
            return true
        }
        if !stored { _ = try await app(bundleID) }
    }

    /// Takes an app's server key away; throws `notFound` where there is none, `exists` while the app needs it. Workers
    /// see to it that what notifications named, and no customer's receipt polls, is known by notification only again.
    package func removeServerKey(of bundleID: BundleID) async throws {
        let app = try await app(bundleID)
        guard app.verifier == .verifyReceipt else {
            throw LedgerError(
                .exists,
                "\(bundleID) asks the Server API; run `perennial app set \(bundleID) --verifier verify_receipt` first.")
        }
        let removed = try await write(
            Queries.removeServerKey, .text(bundleID.text), audited: .serverKeyRemoved, app: bundleID)
        if removed.isEmpty { throw LedgerError(.notFound, "\(bundleID) has no server key.") }
    }

    /// Returns an app's server key, opened; nil where there is none. Throws `mismatch` where it does not open here.
    package func serverKey(of app: App) throws -> ServerKeyText? {
        guard let name = app.serverKey, let sealed = app.sealedServerKey else { return nil }
        return ServerKeyText(name: name, pem: try requiredSeal().open(sealed, for: Self.serverKeyOwner(app.bundleID)))
    }

    static func serverKeyOwner(_ bundleID: BundleID) -> String { "server key of \(bundleID)" }
}

extension LedgerApps {
    /// Stores an app's key for promotional offers; throws `unknownApp` for an unknown app, `invalid` without a master key.
    package func storeOfferKey(_ key: ConnectKey, of bundleID: BundleID) async throws {
        let sealed = try requiredSeal().seal(key.key.pemRepresentation, for: Self.offerKeyOwner(bundleID))
        let rows = try await write(
            Queries.storeOfferKey, .text(bundleID.text), .text(key.name.id), .text(key.name.issuer), .bytea(sealed),
            audited: .offerKeyStored, app: bundleID,
            detail: ["key_id": key.name.id, "issuer_id": key.name.issuer].compactMapValues { $0 })
        if rows.isEmpty { _ = try await app(bundleID) }
    }

    /// Takes an app's offer key away; throws `notFound` where there is none.
    package func removeOfferKey(of bundleID: BundleID) async throws {
        let rows = try await write(
            Queries.removeOfferKey, .text(bundleID.text), audited: .offerKeyRemoved, app: bundleID)
        guard rows.isEmpty else { return }
        _ = try await app(bundleID)
        throw LedgerError(.notFound, "\(bundleID) has no offer key.")
    }

    /// Returns an app's offer key, opened; throws `notFound` where there is none.
    func offerKey(of bundleID: BundleID) async throws -> ConnectKey {
        guard let row = try await query(Queries.readOfferKey, .text(bundleID.text)).first else {
            throw LedgerError(
                .notFound,
                "\(bundleID) has no key to sign offers with; store it with "
                    + "`perennial app offer-key \(bundleID) --key-file FILE --key-id ID`.")
        }
        let pem = try requiredSeal().open(try row.bytea("sealed_key"), for: Self.offerKeyOwner(bundleID))
        return try ConnectKey(pem: pem, id: try row.text("key_id"), issuer: try row.textIfPresent("issuer_id"))
    }

    static func offerKeyOwner(_ bundleID: BundleID) -> String { "offer key of \(bundleID)" }
}
