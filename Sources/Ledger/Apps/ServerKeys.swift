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
    /// Stores the key that signs an app's requests to the Server API, in place of an earlier one; a pause because Apple refused
    /// that one ends. What only the Server API can be asked about, and no receipt polls, is asked about again.
    ///
    /// Throws `notFound` for an unknown app, `invalid` without a master key or an issuer.
    package func storeServerKey(_ key: ConnectKey, of bundleID: BundleID) async throws {
        guard let issuer = key.name.issuer else {
            throw LedgerError(
                .invalid, "A server key needs its issuer id, which stands above the keys in App Store Connect.")
        }
        let sealed = try requiredSeal().seal(key.key.pemRepresentation, for: Self.serverKeyOwner(bundleID))
        let name = key.name.id
        let stored = try await ledger.changingPollers { transaction -> Bool in
            let rows = try transaction.query(
                Queries.storeServerKey, [.text(bundleID.text), .text(name), .text(issuer), .bytea(sealed)])
            guard let app = try rows.first?.int4("app_id") else { return false }
            try ledger.audit(
                .serverKeyStored, app: bundleID, detail: ["key_id": name, "issuer_id": issuer], in: transaction)
            try transaction.query(
                Queries.takeUpOwnerless, [.int8s(try Self.ownerless(of: app, in: transaction).map(\.number))])
            return true
        }
        if !stored { _ = try await app(bundleID) }
    }

    /// Takes an app's server key away; throws `notFound` where there is none, `exists` while the app needs it.
    ///
    /// What notifications named, and no customer's receipt polls, is known by notification only again.
    package func removeServerKey(of bundleID: BundleID) async throws {
        let app = try await app(bundleID)
        guard app.verifier == .verifyReceipt else {
            throw LedgerError(
                .exists,
                "\(bundleID) asks the Server API; run `perennial app set \(bundleID) --verifier verify_receipt` first.")
        }
        let removed = try await ledger.changingPollers { transaction -> Bool in
            let rows = try transaction.query(Queries.removeServerKey, [.text(bundleID.text)])
            guard let app = try rows.first?.int4("app_id") else { return false }
            try ledger.audit(.serverKeyRemoved, app: bundleID, in: transaction)
            try Self.giveUp(try Self.ownerless(of: app, in: transaction), of: app, in: transaction)
            return true
        }
        if !removed { throw LedgerError(.notFound, "\(bundleID) has no server key.") }
    }

    /// Returns the receipts that notifications made.
    private static func ownerless(of app: Int32, in transaction: Transaction) throws -> [ReceiptID] {
        try transaction.query(Queries.findOwnerless, [.int4(app)]).map { ReceiptID(try $0.int8("receipt_id")) }
    }

    /// Releases what receipts poll that cannot be asked about any more, where no other receipt takes over.
    private static func giveUp(_ receipts: [ReceiptID], of app: Int32, in transaction: Transaction) throws {
        guard !receipts.isEmpty else { return }
        var question = FoundPollers.Question()
        (question.polledBy, question.unable) = (receipts, receipts)
        var run = try SettlementRun(covering: question, in: transaction)
        try run.planPolling()
        run.releaseUnable()
        let numbers = Parameter.int8s(receipts.map(\.number))
        try transaction.query(Queries.giveUp, [.int4(app), numbers])
        try run.writePolling(in: transaction)
        try transaction.query(Queries.unschedule, [numbers])
    }

    /// Returns an app's server key, opened; nil where there is none. Throws `mismatch` where it does not open here.
    package func serverKey(of app: App) throws -> ServerKeyText? {
        guard let name = app.serverKey, let sealed = app.sealedServerKey else { return nil }
        return ServerKeyText(
            name: name, pem: try requiredSeal().open(sealed, for: Self.serverKeyOwner(app.bundleID)))
    }

    static func serverKeyOwner(_ bundleID: BundleID) -> String { "server key of \(bundleID)" }
}
