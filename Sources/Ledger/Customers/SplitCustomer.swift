import Postgres
import SQL
package import Subscriptions

/// The result of splitting one name from another customer.
package struct CustomerSplit: Sendable, Hashable {
    /// The customer that the name stood for.
    package let from: String
    /// Subscriptions and one-time purchases that were returned.
    package let things: Int
}

extension LedgerCustomers {
    /// Undoes a merge: from now on, a name stands for its own customer again, who gets back what moved with the name.
    ///
    /// These are the uploads, and the subscriptions and purchases that the other customer has owned since the merge.
    /// What was uploaded under the name meanwhile stays with the other customer, and so do manual grants. Answers about
    /// the time between stay the same for both names.
    ///
    /// Throws `notFound` when the app or the name is unknown, `invalid` when the name is not merged.
    package func split(
        _ name: String, of bundleID: BundleID, deciding decision: ManualDecision
    ) async throws -> CustomerSplit {
        try Upload.requireValidCustomerID(name)
        let app = try await ledger.apps.app(bundleID)
        return try await ledger.changingCustomers { transaction in
            var people = try LockedCustomers(named: [name], appID: app.id, in: transaction)
            guard let head = people.head(of: name), let old = people.names.first(where: { $0.name == name }) else {
                throw LedgerError(.notFound, "\(bundleID) has no customer \(name).")
            }
            guard old != head else {
                throw LedgerError(.invalid, "\(name) is not the name of another customer; there is nothing to undo.")
            }
            let things = try people.giveBack(to: old, from: head, in: transaction)
            try ledger.audit(
                .customerSplit, app: bundleID, customer: name, detail: ["things": "\(things)"],
                decided: AuditedDecision(decision: decision, about: people.names.map(\.customer)), in: transaction)
            return CustomerSplit(from: head.name, things: things)
        }
    }
}

extension LockedCustomers {
    fileprivate mutating func giveBack(to old: Name, from head: Name, in transaction: Transaction) throws -> Int {
        let merged = try transaction.query(
            Queries.readMergedContents, [.int8(old.customer.number), .int8(head.customer.number)])
        run.give(
            subscriptions: Set(try merged.compactMap { try $0.int8IfPresent("subscription_id") }),
            purchases: Set(try merged.compactMap { try $0.int8IfPresent("purchase_id") }),
            to: old.customer, named: old.name, because: .split)
        let affected = try AffectedCustomers(locking: [old.customer, head.customer], in: transaction)
        try run.moveDeliveries(from: [head.customer], to: old.customer, in: transaction)
        let things = try run.writeHandOver(in: transaction)
        try transaction.query(
            Queries.splitName, [.int8(old.customer.number), .timestamptz(microseconds: run.recordedMicroseconds)])
        try affected.store(in: transaction)
        try EntitlementsChanged(for: [old.customer, head.customer], because: .split)
            .write(since: run.recordedMicroseconds, in: transaction)
        return things
    }
}
