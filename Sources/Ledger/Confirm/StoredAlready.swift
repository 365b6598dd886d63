import Postgres
import SQL
package import Subscriptions

extension LedgerSettlements {
    /// Returns whether evidence states nothing that is not stored: merged into what is stored, it would change nothing.
    ///
    /// It reads without locks. A change in between is no harm, because `confirm` leaves out a receipt whose contents
    /// another transaction changed.
    package func isStored(_ evidence: Evidence, of app: App) async throws -> Bool {
        var part = evidence
        part.coverage = .piece
        let policy = app.policy(for: evidence.environment)
        return try await database.transaction { [part] transaction in
            try Self.holdsSubscriptions(of: part, of: app, policy: policy, in: transaction)
                && Self.holdsPurchases(of: part, of: app, in: transaction)
        }
    }

    private static func holdsSubscriptions(
        of evidence: Evidence, of app: App, policy: Policy, in transaction: Transaction
    ) throws -> Bool {
        let keys = evidence.subscriptions.map {
            SubscriptionRowKey(appID: app.id, environment: evidence.environment, id: $0)
        }
        guard !keys.isEmpty else { return true }
        let rows = try transaction.query(Queries.readStoredSubscriptions, SubscriptionRowKey.parameters(keys))
        let drafts = try LoadedSubscriptions(
            rows, recordedMicroseconds: 0, lockingOwners: false, in: transaction
        ).drafts
        return keys.allSatisfy { key in
            guard let stored = drafts[key]?.stored else { return false }
            let result = reconcile(stored, with: evidence.slice(of: key.id), policy: policy)
            return !result.changed && !result.isContradicted
        }
    }

    private static func holdsPurchases(
        of evidence: Evidence, of app: App, in transaction: Transaction
    ) throws -> Bool {
        let bought = evidence.purchases.map {
            (PurchaseRowKey(appID: app.id, environment: evidence.environment, purchase: $0.key), $0)
        }
        guard !bought.isEmpty else { return true }
        let rows = try transaction.query(Queries.readStoredPurchases, PurchaseRowKey.parameters(bought.map(\.0)))
        let drafts = try LoadedPurchases(
            rows, recordedMicroseconds: 0, lockingOwners: false, in: transaction
        ).drafts
        return bought.allSatisfy { key, evidence in
            guard let stored = drafts[key]?.stored else { return false }
            return reconcilePurchase(stored, with: evidence)?.changed != true
        }
    }
}
