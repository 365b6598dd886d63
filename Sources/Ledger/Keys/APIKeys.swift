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
    /// The range of `perSecond`, besides 0: at least about one request in a quarter of an hour, and no more than any
    /// caller could send.
    static let perSecondAllowed = 0.001...1_000_000.0
    /// The range of `burst`.
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

    /// Whether a key may have this rate limit.
    var isAllowed: Bool {
        (perSecond == 0 || Self.perSecondAllowed.contains(perSecond)) && Self.burstAllowed.contains(burst)
    }
}

/// An API key as stored in the ledger, without the key itself.
package struct APIKey: Sendable, Hashable {
    /// The key's number.
    package let id: Int32
    /// The scope of the key.
    package let scope: Scope
    /// The only app it gives access to; nil for every app.
    package let bundleID: BundleID?
    /// The key's rate limit on each server.
    package var rate = RequestRate.usual
}

/// The stored digest of an API key. Keys are long and random, so a key cannot be found from its digest, and comparing
/// digests reveals nothing about a key.
package struct KeyDigest: Sendable, Hashable {
    let bytes: [UInt8]

    /// Creates the digest of a key in plain text.
    package init(ofSecret secret: String) {
        bytes = [UInt8](SHA256.hash(data: Data(secret.utf8)))
    }
}

/// An entry in the list of API keys.
package struct ListedAPIKey: Sendable {
    /// The key.
    package let key: APIKey
    /// The time when the key was created.
    package let createdAt: Instant
    /// The time when it was revoked, if it was.
    package let revokedAt: Instant?
}

extension LedgerApps {
    /// Creates a key and returns it in plain text, which cannot be read again.
    ///
    /// Throws `invalid` for a rate limit out of range, `notFound` for an unknown app.
    package func createKey(
        scope: Scope, for bundleID: BundleID?, rate: RequestRate = .usual
    ) async throws -> (id: Int32, secret: String) {
        guard rate.isAllowed else {
            throw LedgerError(
                .invalid,
                "A key's rate is 0 (unlimited) or 0.001 to 1000000 requests a second, and its burst 1 to 10000000 requests."
            )
        }
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let secret = "perennial_" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let digest = KeyDigest(ofSecret: secret).bytes
        let id = try await database.transaction { transaction -> Int32? in
            let rows = try transaction.query(
                Queries.createKey,
                [
                    .bytea(digest), .text(scope.rawValue), .text(bundleID?.text), .float8(rate.perSecond),
                    .float8(rate.burst),
                ])
            guard let id = try rows.first?.int4("key_id") else { return nil }
            try ledger.audit(
                .keyCreated, app: bundleID, detail: ["key": "\(id)", "scope": scope.rawValue], in: transaction)
            return id
        }
        guard let id else {
            throw LedgerError(.notFound, "No app has the bundle id \(bundleID?.text ?? ""); see `perennial app list`.")
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

    /// Returns the active key with this secret, or nil.
    ///
    /// A key that is missing on a standby may be too new for it, so the primary is asked as well.
    package func key(withSecret secret: String) async throws -> APIKey? {
        let digest = Parameter.bytea(KeyDigest(ofSecret: secret).bytes)
        let found = try await reads.query(Queries.findKey, [digest])
        let rows = found.isEmpty && reads.mayLag ? try await query(Queries.findKey, [digest]) : found
        return try rows.first.map(APIKey.init(row:))
    }

    /// Revokes a key immediately; throws `notFound` when it does not exist.
    package func revokeKey(_ id: Int32) async throws {
        let isKnown = try await database.transaction { transaction in
            guard let row = try transaction.query(Queries.revokeKey, [.int4(id)]).first else { return false }
            let bundleID = try row.textIfPresent("bundle_id").map { BundleID($0) }
            try ledger.audit(.keyRevoked, app: bundleID, detail: ["key": "\(id)"], in: transaction)
            return true
        }
        guard isKnown else { throw LedgerError(.notFound, "There is no API key \(id); see `perennial key list`.") }
    }

}

extension APIKey {
    init(row: Row) throws {
        id = try row.int4("key_id")
        scope = try row.word("scope")
        bundleID = try row.textIfPresent("bundle_id").map { BundleID($0) }
        rate = RequestRate(perSecond: try row.float8("rate"), burst: try row.float8("burst"))
    }
}
