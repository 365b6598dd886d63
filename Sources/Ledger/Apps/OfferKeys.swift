import Crypto
import Postgres
import SQL
package import Subscriptions

extension LedgerApps {
    /// Stores the key that signs an app's promotional offers, in place of an earlier one.
    ///
    /// Throws `notFound` for an unknown app, `invalid` without a master key.
    package func storeOfferKey(_ key: ConnectKey, of bundleID: BundleID) async throws {
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
    func offerKey(of bundleID: BundleID) async throws -> ConnectKey {
        guard let row = try await query(Queries.readOfferKey, [.text(bundleID.text)]).first else {
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
