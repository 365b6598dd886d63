import Crypto
import Postgres
import SQL
package import Subscriptions

/// An app's server key as text, for the duration of a check.
package struct ServerKeyText: Sendable {
    /// Its name.
    package let name: ConnectKeyName
    /// The private key as PEM.
    package let pem: String
}

extension LedgerApps {
    /// Stores the key that signs an app's requests to the Server API, in place of an earlier one; a pause of the app ends.
    ///
    /// Throws `notFound` for an unknown app, `invalid` without a master key or an issuer.
    package func storeServerKey(_ key: ConnectKey, of bundleID: BundleID) async throws {
        guard let issuer = key.name.issuer else {
            throw LedgerError(
                .invalid, "A server key needs its issuer id, which stands above the keys in App Store Connect.")
        }
        let sealed = try requiredSeal().seal(key.key.pemRepresentation, for: Self.serverKeyOwner(bundleID))
        let rows = try await write(
            Queries.storeServerKey, [.text(bundleID.text), .text(key.name.id), .text(issuer), .bytea(sealed)],
            audited: .serverKeyStored, app: bundleID, detail: ["key_id": key.name.id, "issuer_id": issuer])
        if rows.isEmpty { _ = try await app(bundleID) }
    }

    /// Takes an app's server key away; throws `notFound` where there is none, `exists` while the app needs it.
    package func removeServerKey(of bundleID: BundleID) async throws {
        let app = try await app(bundleID)
        guard app.verifier == .verifyReceipt else {
            throw LedgerError(
                .exists,
                "\(bundleID) asks the Server API; run `perennial app set \(bundleID) --verifier verify_receipt` first.")
        }
        let rows = try await write(
            Queries.removeServerKey, [.text(bundleID.text)], audited: .serverKeyRemoved, app: bundleID)
        if rows.isEmpty { throw LedgerError(.notFound, "\(bundleID) has no server key.") }
    }

    /// Returns an app's server key, opened; nil where there is none. Throws `mismatch` where it does not open here.
    package func serverKey(of app: App) throws -> ServerKeyText? {
        guard let name = app.serverKey, let sealed = app.sealedServerKey else { return nil }
        return ServerKeyText(
            name: name, pem: try requiredSeal().open(sealed, for: Self.serverKeyOwner(app.bundleID)))
    }

    static func serverKeyOwner(_ bundleID: BundleID) -> String { "server key of \(bundleID)" }
}
