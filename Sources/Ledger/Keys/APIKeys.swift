import Crypto
import Foundation
import Postgres
import SQL
import Subscriptions

/// What an API key may do.
public enum Scope: String, Sendable, CaseIterable {
    /// Look things up.
    case read
    /// Look things up and send receipts.
    case write
    /// Everything.
    case admin

    /// Whether a key of this scope may do what needs `other`.
    public func covers(_ other: Scope) -> Bool {
        switch (self, other) {
        case (.admin, _), (.write, .write), (.write, .read), (.read, .read): true
        case (.write, .admin), (.read, .write), (.read, .admin): false
        }
    }
}

/// An API key as the ledger knows it: never the key itself.
public struct APIKey: Sendable, Hashable {
    /// The key's number.
    public let id: Int32
    /// What it may do.
    public let scope: Scope
    /// The only app it may speak about; nil is every app.
    public let bundleID: BundleID?
}

/// A line of the list of API keys.
public struct ListedAPIKey: Sendable {
    /// The key.
    public let key: APIKey
    /// When it was made.
    public let createdAt: Instant
    /// When it was revoked, if it was.
    public let revokedAt: Instant?
}

extension SubscriptionLedger {
    /// Makes a key and returns it in clear, the only time it can be seen.
    public func createKey(scope: Scope, for bundleID: BundleID?) async throws -> (id: Int32, secret: String) {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let secret = "perennial_" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let rows = try await write(
            Queries.createKey, [.bytea(Self.digest(ofKey: secret)), .text(scope.rawValue), .text(bundleID?.text)])
        guard let row = rows.first else {
            throw LedgerError(.notFound, "No app has the bundle id \(bundleID?.text ?? ""); see `perennial app list`.")
        }
        return (try row.int4("key_id"), secret)
    }

    /// Every key that was ever made.
    public func keys() async throws -> [ListedAPIKey] {
        try await query(Queries.readKeys).map { row in
            ListedAPIKey(
                key: try APIKey(row: row), createdAt: try row.instant("created_at"),
                revokedAt: try row.instantIfPresent("revoked_at"))
        }
    }

    /// The live key with the given secret, or nil.
    public func key(withSecret secret: String) async throws -> APIKey? {
        let rows = try await reads.query(Statement(Queries.findKey), [.bytea(Self.digest(ofKey: secret))])
        return try rows.first.map(APIKey.init(row:))
    }

    /// Ends a key at once.
    public func revokeKey(_ id: Int32) async throws {
        guard try await !write(Queries.revokeKey, [.int4(id)]).isEmpty else {
            throw LedgerError(.notFound, "There is no API key \(id); see `perennial key list`.")
        }
    }

    private static func digest(ofKey secret: String) -> [UInt8] {
        [UInt8](SHA256.hash(data: Data(secret.utf8)))
    }
}

extension APIKey {
    init(row: Row) throws {
        id = try row.int4("key_id")
        scope = try row.word("scope")
        bundleID = try row.textIfPresent("bundle_id").map { BundleID($0) }
    }
}
