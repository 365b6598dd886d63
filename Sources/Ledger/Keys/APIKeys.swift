import Crypto
import Foundation
import Postgres
import SQL
import Subscriptions

/// What an API key may do.
package enum Scope: String, Sendable, CaseIterable {
    /// Look things up.
    case read
    /// Look things up and send receipts.
    case write
    /// Everything.
    case admin

    /// Whether a key of this scope may do what needs `other`.
    package func covers(_ other: Scope) -> Bool {
        switch (self, other) {
        case (.admin, _), (.write, .write), (.write, .read), (.read, .read): true
        case (.write, .admin), (.read, .write), (.read, .admin): false
        }
    }
}

/// How many requests a key may make: a bucket that holds `burst` and fills by `perSecond`.
package struct RequestRate: Sendable, Hashable {
    /// What a key gets unless told otherwise: more than one server answers, so that only a runaway caller meets it.
    package static let usual = RequestRate(perSecond: 20_000)
    /// What may be chosen but 0: a request in a quarter of an hour at least, and no more than anybody could send.
    static let perSecondAllowed = 0.001...1_000_000.0
    /// How many requests at once may be chosen.
    static let burstAllowed = 1.0...10_000_000

    /// Requests a second in the long run; 0 is unlimited.
    package let perSecond: Double
    /// Requests at once after a pause, at least 1.
    package let burst: Double

    /// A rate; without a burst twice as many at once as in a second.
    package init(perSecond: Double, burst: Double? = nil) {
        self.perSecond = perSecond
        self.burst = burst ?? max(1, 2 * perSecond)
    }

    /// Whether a key may have it.
    var isAllowed: Bool {
        (perSecond == 0 || Self.perSecondAllowed.contains(perSecond)) && Self.burstAllowed.contains(burst)
    }
}

/// An API key as the ledger knows it: never the key itself.
package struct APIKey: Sendable, Hashable {
    /// The key's number.
    package let id: Int32
    /// What it may do.
    package let scope: Scope
    /// The only app it may speak about; nil is every app.
    package let bundleID: BundleID?
    /// How many requests it may make of each server.
    package var rate = RequestRate.usual
}

/// What is kept of an API key. Keys are random and long, so that nobody finds one by its digest, and comparing digests
/// tells nothing about a key.
package struct KeyDigest: Sendable, Hashable {
    let bytes: [UInt8]

    /// The digest of a key in clear.
    package init(ofSecret secret: String) {
        bytes = [UInt8](SHA256.hash(data: Data(secret.utf8)))
    }
}

/// A line of the list of API keys.
package struct ListedAPIKey: Sendable {
    /// The key.
    package let key: APIKey
    /// When it was made.
    package let createdAt: Instant
    /// When it was revoked, if it was.
    package let revokedAt: Instant?
}

extension SubscriptionLedger {
    /// Makes a key and returns it in clear, the only time it can be seen.
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
            try audit(
                .keyCreated, app: bundleID, detail: ["key": "\(id)", "scope": scope.rawValue], in: transaction)
            return id
        }
        guard let id else {
            throw LedgerError(.notFound, "No app has the bundle id \(bundleID?.text ?? ""); see `perennial app list`.")
        }
        return (id, secret)
    }

    /// Every key that was ever made.
    package func keys() async throws -> [ListedAPIKey] {
        try await query(Queries.readKeys).map { row in
            ListedAPIKey(
                key: try APIKey(row: row), createdAt: try row.instant("created_at"),
                revokedAt: try row.instantIfPresent("revoked_at"))
        }
    }

    /// The live key with the given secret, or nil. A key that a standby does not know may be too new for it.
    package func key(withSecret secret: String) async throws -> APIKey? {
        let digest = Parameter.bytea(KeyDigest(ofSecret: secret).bytes)
        let found = try await reads.query(Queries.findKey, [digest])
        let rows = found.isEmpty && reads.mayLag ? try await query(Queries.findKey, [digest]) : found
        return try rows.first.map(APIKey.init(row:))
    }

    /// Ends a key at once.
    package func revokeKey(_ id: Int32) async throws {
        let isKnown = try await database.transaction { transaction in
            guard let row = try transaction.query(Queries.revokeKey, [.int4(id)]).first else { return false }
            let bundleID = try row.textIfPresent("bundle_id").map { BundleID($0) }
            try audit(.keyRevoked, app: bundleID, detail: ["key": "\(id)"], in: transaction)
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
