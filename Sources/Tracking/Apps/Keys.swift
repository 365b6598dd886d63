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
    package static let perSecondAllowed = 0.001...1_000_000.0
    /// The range of `burst`.
    package static let burstAllowed = 1.0...10_000_000

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
    /// Creates a key; its text cannot be read again. Throws `invalid` for a bad rate, `unknownApp` for an unknown app.
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
                throw LedgerError.unknownApp(bundleID ?? "", "see `perennial app list`.")
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
        let rows = found.isEmpty && reads.mayLag ? try await reads.queryPrimary(Queries.findKey, [digest]) : found
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

/// A running session of the admin page.
package struct AdminSession: Sendable, Hashable {
    /// The number of the key that opened the session.
    package let keyID: Int32
    /// The token in every form of the session, made of its secret; a page of another site cannot know it.
    package let formToken: String
}

extension LedgerAdmin {
    /// The length of a session, in seconds: a working day.
    package static let sessionSeconds = 12.0 * 3_600

    /// Opens a session for a key, the audited actor; returns the secret for the browser, of which a hash is stored.
    package func openSession(of key: APIKey) async throws -> String {
        let secret = (0..<32).map { _ in UInt8.random(in: 0...255) }.hexadecimal
        _ = try await ledger.acting(as: .key(key.id)).write(
            Queries.openSession, .bytea(secret.sha256), .int4(key.id), .float8(Self.sessionSeconds), audited: .signedIn)
        return secret
    }

    /// Returns the running session with this secret; nil when the session ended or its key was revoked.
    package func session(withSecret secret: String) async throws -> AdminSession? {
        // Read from the primary: a standby may not have a session that was opened a moment ago.
        let rows = try await query(Queries.findSession, .bytea(secret.sha256))
        return try rows.first.map { row in
            AdminSession(keyID: try row.int4("key_id"), formToken: "form of \(secret)".sha256.hexadecimal)
        }
    }

    /// Ends a session of a key immediately.
    package func closeSession(withSecret secret: String, of keyID: Int32) async throws {
        _ = try await ledger.acting(as: .key(keyID)).write(
            Queries.closeSession, .bytea(secret.sha256), audited: .signedOut)
    }
}
