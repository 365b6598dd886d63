import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// The scope of an API key: what it may do.
package enum Scope: String, Sendable, CaseIterable {
    /// Lookups.
    case read
    /// Lookups and uploads of receipts.
    case write
    /// Everything.
    case admin

    /// Returns whether a key of this scope may make requests that need `other`.
    package func covers(_ other: Scope) -> Bool {
        switch (self, other) {
        case (.admin, _), (.write, .write), (.write, .read), (.read, .read): true
        case (.write, .admin), (.read, .write), (.read, .admin): false
        }
    }
}

/// The rate limit of a key's requests: a token bucket that holds `burst` and fills by `perSecond`.
package struct RequestRate: Sendable, Hashable {
    /// The default rate limit: more requests than one server can answer, so only a runaway caller reaches it.
    package static let usual = RequestRate(perSecond: 20_000)
    /// The range of `perSecond`, besides 0: from a request in a quarter of an hour to more than a caller can send.
    static let perSecondAllowed = 0.001...1_000_000.0
    static let burstAllowed = 1.0...10_000_000

    /// The long-term rate in requests a second; 0 is unlimited.
    package let perSecond: Double
    /// The number of requests that may be made at once after a pause, at least 1.
    package let burst: Double

    /// Creates a rate limit; the default burst is twice `perSecond`, but at least 1.
    package init(perSecond: Double, burst: Double? = nil) {
        self.perSecond = perSecond
        self.burst = burst ?? max(1, 2 * perSecond)
    }

    var isAllowed: Bool {
        (perSecond == 0 || Self.perSecondAllowed.contains(perSecond)) && Self.burstAllowed.contains(burst)
    }
}

/// An API key as stored in the ledger, without the key itself.
package struct APIKey: Sendable, Hashable {
    package let id: Int32
    package let scope: Scope
    /// The only app it gives access to; nil for every app.
    package let bundleID: BundleID?
    /// The key's rate limit on each server.
    package var rate = RequestRate.usual
}

/// An entry in the list of API keys.
package struct ListedAPIKey: Sendable {
    package let key: APIKey
    package let createdAt: Instant
    package let revokedAt: Instant?
}

extension LedgerApps {
    /// Creates a key; its text cannot be read again. Throws `invalid` for a bad rate, `notFound` for an unknown app.
    package func createKey(
        scope: Scope, for bundleID: BundleID?, rate: RequestRate = .usual
    ) async throws -> (id: Int32, secret: String) {
        guard rate.isAllowed else {
            throw LedgerError(
                .invalid,
                "A key's rate is 0 (unlimited) or 0.001 to 1000000 requests a second, and its burst 1 to 10000000 requests."
            )
        }
        let secret = "perennial_" + String.randomHexadecimal(digits: 64)
        let id = try await database.transaction { transaction in
            let rows = try transaction.query(
                Queries.createKey, .bytea(secret.sha256), .text(scope.rawValue), .text(bundleID?.text),
                .float8(rate.perSecond), .float8(rate.burst))
            guard let id = try rows.first?.int4("key_id") else {
                throw LedgerError(
                    .notFound, "No app has the bundle id \(bundleID?.text ?? ""); see `perennial app list`.")
            }
            try ledger.audit(
                .keyCreated, app: bundleID, detail: ["key": "\(id)", "scope": scope.rawValue], in: transaction)
            return id
        }
        return (id, secret)
    }

    /// Returns every key ever created, including revoked ones.
    package func keys() async throws -> [ListedAPIKey] {
        try await query(Queries.readKeys).map { row in
            ListedAPIKey(
                key: try APIKey(row: row), createdAt: try row.instant("created_at"),
                revokedAt: try row.instantIfPresent("revoked_at"))
        }
    }

    /// Returns the active key with this secret, or nil. The primary has keys that are too new for a standby.
    package func key(withSecret secret: String) async throws -> APIKey? {
        // Keys are long and random, so that neither a digest nor its comparison reveals anything.
        let digest = Parameter.bytea(secret.sha256)
        let found = try await reads.query(Queries.findKey, [digest])
        let rows = found.isEmpty && reads.mayLag ? try await query(Queries.findKey, digest) : found
        return try rows.first.map(APIKey.init(row:))
    }

    /// Revokes a key immediately; throws `notFound` when it does not exist.
    package func revokeKey(_ id: Int32) async throws {
        try await database.transaction { transaction in
            guard let row = try transaction.query(Queries.revokeKey, .int4(id)).first else {
                throw LedgerError(.notFound, "There is no API key \(id); see `perennial key list`.")
            }
            let bundleID = try row.textIfPresent("bundle_id").map { BundleID($0) }
            try ledger.audit(.keyRevoked, app: bundleID, detail: ["key": "\(id)"], in: transaction)
        }
    }
}

extension String {
    /// Returns random digits from 0 to f, each of 4 bits.
    static func randomHexadecimal(digits: Int) -> String {
        (0..<digits).map { _ in String(UInt8.random(in: 0..<16), radix: 16) }.joined()
    }

    /// The SHA-256 of its bytes.
    var sha256: [UInt8] { Array(SHA256.hash(data: Data(utf8))) }
}

extension [String] {
    /// The SHA-256 of the texts with their lengths, so that one list gives another hash than every other list.
    var sha256: [UInt8] { map { "\($0.utf8.count):\($0)" }.joined().sha256 }
}

extension Sequence<UInt8> {
    /// Two lowercase hexadecimal digits for each byte.
    var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

extension APIKey {
    init(row: Row) throws {
        id = try row.int4("key_id")
        scope = try row.word("scope")
        bundleID = try row.idIfPresent("bundle_id")
        rate = RequestRate(perSecond: try row.float8("rate"), burst: try row.float8("burst"))
    }
}

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
}

extension LedgerApps {
    /// Stores the key that signs an app's requests to the Server API, in place of an earlier one; a pause because Apple
    /// refused that one ends. Workers take up what only the Server API can be asked about, and no receipt polls. Throws
    /// `notFound` for an unknown app, `invalid` without a master key or an issuer.
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
