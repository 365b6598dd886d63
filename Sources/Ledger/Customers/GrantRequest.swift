import Crypto
import Foundation
import Postgres
import SQL
import Subscriptions

/// The `Idempotency-Key` of a manual grant: a repetition within 24 hours gets the first answer, and grants nothing.
package struct GrantRequest: Sendable, Hashable {
    /// The longest key, in bytes.
    package static let keyBytesMax = LedgerOrders.requestKeyBytesMax

    /// The caller's key.
    let key: String

    /// Creates a request; throws `invalid` for an empty or too long key.
    package init(key: String) throws(LedgerError) {
        guard (1...Self.keyBytesMax).contains(key.utf8.count), !key.unicodeScalars.contains("\0") else {
            throw LedgerError(.invalid, "An Idempotency-Key has 1 to \(Self.keyBytesMax) bytes.")
        }
        self.key = key
    }

    /// Returns SHA-256 of everything that is asked.
    static func digest(
        _ entitlement: String, to customer: String, until: Instant?, deciding decision: ManualDecision
    ) -> [UInt8] {
        let parts = [entitlement, customer, until?.iso8601 ?? "", decision.actor, decision.reason]
        return Array(SHA256.hash(data: Data(parts.map { "\($0.utf8.count):\($0)" }.joined().utf8)))
    }

    /// Returns the grant that the key made before. Throws `exists` where it made another one.
    func known(_ digest: [UInt8], app: Int32, at now: Int64, in transaction: Transaction) throws -> ManualGrant? {
        let found = try transaction.query(
            Queries.findGrantRequest, [.int4(app), .text(key), .timestamptz(microseconds: now)])
        guard let row = found.first else { return nil }
        guard try row.bytea("request") == digest else { throw Self.taken }
        return try ManualGrant(row: row)
    }

    /// Notes the grant that the key made. Throws `exists` where another request took the key meanwhile.
    func note(
        _ grant: ManualGrant, _ digest: [UInt8], app: Int32, grants: ManualGrants, in transaction: Transaction
    ) throws {
        let noted = try transaction.query(
            Queries.insertGrantRequest,
            [
                .int4(app), .text(key), .bytea(digest), .int8(grants.customer.number), .text(grant.entitlement),
                .timestamptz(microseconds: grants.recordedMicroseconds),
            ])
        guard !noted.isEmpty else { throw Self.taken }
    }

    private static let taken = LedgerError(
        .exists, "This Idempotency-Key made another grant; use a key of its own.")
}

/// A manual grant as its giving is answered.
package struct GivenGrant: Sendable, Hashable {
    /// The grant.
    package let grant: ManualGrant
    /// Whether this call gave it; otherwise an earlier call with the same key did.
    package let isNew: Bool
}
