import Postgres
import SQL
package import Subscriptions

extension LedgerApps {
    /// The most customers, or receipts, that are read at a time to be erased.
    private static let erasedMax: Int32 = 100
    /// How often an erasure is tried while Apple is being asked about a receipt, with a pause before each.
    private static let triesMax = 60
    private static let pause = Duration.seconds(1)

    /// Removes an app without receipts: it is as if it was never registered. Its secrets go and its API keys end. Events
    /// and figures stay, and so does its catalog, for the day on which it is registered again.
    ///
    /// Throws `notFound` for an unknown app, `exists` while receipts of it are stored.
    package func remove(_ bundleID: BundleID, deciding decision: ManualDecision) async throws {
        let app = try await app(bundleID)
        let removed = try await write(
            Queries.removeApp, [.int4(app.id)], audited: .appRemoved, app: bundleID,
            detail: ["by": decision.actor, "reason": decision.reason])
        guard removed.isEmpty else { return }
        throw LedgerError(
            .exists,
            "Receipts of \(bundleID) are stored. Erase them with --erase-receipts, which erases all its customers too.")
    }

    /// Erases all customers of an app, and the receipts that no customer uploaded. It may be repeated after an
    /// interruption. `onErased` learns the number of erased customers so far.
    ///
    /// Throws what ``LedgerCustomers/erase(_:of:deciding:)`` throws; `busy` after a minute of calls to Apple.
    package func eraseCustomers(
        of bundleID: BundleID, deciding decision: ManualDecision, onErased: (Int) -> Void
    ) async throws {
        let app = try await app(bundleID)
        var erased = 0
        while true {
            let rows = try await query(Queries.readUnerased, [.int4(app.id), .int4(Self.erasedMax)])
            guard !rows.isEmpty else { break }
            for row in rows {
                try await erase(try row.text("name"), of: bundleID, deciding: decision)
                erased += 1
                onErased(erased)
            }
        }
        while try await eraseUnclaimedReceipts(of: app) {}
    }

    private func erase(_ customer: String, of bundleID: BundleID, deciding decision: ManualDecision) async throws {
        for attempt in 1... {
            do {
                _ = try await ledger.customers.erase(customer, of: bundleID, deciding: decision)
                return
            } catch let error as LedgerError where error.kind == .busy && attempt < Self.triesMax {
                try await Task.sleep(for: Self.pause)
            }
        }
    }

    private func eraseUnclaimedReceipts(of app: App) async throws -> Bool {
        try await ledger.changingPollers { transaction in
            let rows = try transaction.query(Queries.readUnclaimedReceipts, [.int4(app.id), .int4(Self.erasedMax)])
            guard !rows.isEmpty, let clock = try transaction.query(Queries.readClock).first else { return false }
            let ids = try rows.map { try $0.int8("receipt_id") }
            try ledger.handOver(from: ids.map(ReceiptID.init), in: transaction)
            try transaction.query(
                Queries.eraseReceipts,
                [.int8s(ids), .timestamptz(microseconds: try clock.timestamptz("recorded_at"))])
            return true
        }
    }
}
