import Postgres
import SQL
package import Subscriptions

extension LedgerCustomers {
    /// Assigns a subscription or one-time purchase to a customer manually, for example to undo a transfer; returns how
    /// many changed their owner. The customer need not exist.
    ///
    /// Throws `notFound` when the app is unknown or has nothing with this id.
    package func assign(
        _ id: OriginalTransactionID, to customer: String, of bundleID: BundleID, deciding decision: ManualDecision
    ) async throws -> Int {
        try Upload.requireValidCustomerID(customer)
        let app = try await ledger.apps.app(bundleID)
        return try await ledger.changingCustomers { transaction in
            let name = [Parameter.int4(app.id), .text(id.text)]
            let subscriptions = try transaction.query(Queries.lockOwned, [.int8s([]), .int8s([])] + name)
            let purchases = try transaction.query(Queries.lockOwnedPurchases, [.int8s([]), .int8s([])] + name)
            guard !subscriptions.isEmpty || !purchases.isEmpty else {
                throw LedgerError(.notFound, "\(bundleID) has no subscription or purchase \(id).")
            }
            try transaction.query(Queries.insertCustomers, [.int4s([app.id]), .texts([customer])])
            let found = try transaction.query(Queries.findCustomers, [.int4s([app.id]), .texts([customer])])
            guard let row = found.first else { throw LedgerError(.mismatch, "The customer was not stored.") }
            var run = try SettlementRun(locked: subscriptions, purchases: purchases, in: transaction)
            let owner = CustomerID(number: try row.int8("customer_id"))
            let people = run.owners.union([owner])
            run.give(to: owner, named: try row.text("called"), because: .assignment)
            let affected = try run.lockAffectedCustomers(in: transaction)
            let things = try run.writeHandOver(in: transaction)
            try affected.store(in: transaction)
            if things > 0 {
                try ledger.audit(
                    .ownerAssigned, app: bundleID, customer: customer, detail: ["original_transaction_id": id.text],
                    decided: AuditedDecision(decision: decision, about: Array(people)), in: transaction)
            }
            return things
        }
    }
}
