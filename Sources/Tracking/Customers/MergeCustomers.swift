import Postgres
import SQL
package import Subscriptions

/// The result of merging one customer into another.
package struct CustomerMerge: Sendable, Hashable {
    /// The customer that the name now stands for.
    package let into: String
    /// Whether the names were already merged, so that nothing was done.
    package let wasMerged: Bool
    /// Subscriptions and one-time purchases that changed their owner.
    package let things: Int
}

extension LedgerCustomers {
    /// Merges one customer, such as an anonymous one, into another: ownerships, uploads and manual grants move.
    ///
    /// From now on, a query for the old name returns the answer for the new one, and uploads under the old name belong to
    /// the new one. Answers about the time before stay the same. A repeated merge does nothing.
    ///
    /// Throws `invalid` for equal names, `notFound` when the app or the first name is unknown, `exists` when the first
    /// name already belongs to a third customer.
    package func merge(
        _ from: String, into: String, of bundleID: BundleID, deciding decision: ManualDecision
    ) async throws -> CustomerMerge {
        try Upload.requireValidCustomerID(from)
        try Upload.requireValidCustomerID(into)
        guard from != into else { throw LedgerError(.invalid, "A customer cannot be merged into themselves.") }
        let app = try await ledger.apps.app(bundleID)
        return try await ledger.changingPollers(orCustomers: true) { transaction in
            guard try transaction.query(Queries.findNamedCustomers, .int4(app.id), .texts([from])).count > 0 else {
                throw LedgerError(.notFound, "\(bundleID) has no customer \(from).")
            }
            try transaction.query(Queries.insertCustomers, .int4s([app.id]), .texts([into]))
            var people = try LockedCustomers(named: [from, into], appID: app.id, in: transaction)
            let merge = try people.merge(from, into: into, in: transaction)
            guard !merge.wasMerged else { return merge }
            try ledger.audit(
                .customerMerged, app: bundleID, customer: into, detail: ["things": "\(merge.things)"],
                decided: AuditedDecision(decision: decision, about: people.names.map(\.customer)), in: transaction)
            return merge
        }
    }
}

extension LockedCustomers {
    fileprivate mutating func merge(_ from: String, into: String, in transaction: Transaction) throws -> CustomerMerge {
        guard let old = head(of: from), let new = head(of: into) else { throw LedgerError.erasedMeanwhile }
        guard old != new else { return CustomerMerge(into: new.name, wasMerged: true, things: 0) }
        guard old.name == from else {
            throw LedgerError(.exists, "\(from) is a name of \(old.name); merge that one instead.")
        }
        let merged = names.filter { $0.head == old.customer }.map(\.customer)
        let affected = try AffectedCustomers(locking: Set(names.map(\.customer)), in: transaction)
        run.give(from: Set(merged), to: new.customer, named: new.name, because: .merge)
        try run.moveDeliveries(from: Set(merged), to: new.customer, in: transaction)
        let things = try run.writeHandOver(in: transaction)
        try transaction.query(Queries.mergeUploads, .int8(old.customer.number), .int8(new.customer.number))
        try moveGrants(from: old.customer, to: new.customer, in: transaction)
        try transaction.query(
            Queries.mergeNames, .int8s(merged.map(\.number)), .int8(new.customer.number),
            .timestamptz(microseconds: run.recordedMicroseconds))
        try affected.store(in: transaction)
        let all = names.map(\.customer)
        try run.decidePayments(of: all, tying: all, in: transaction)
        try EntitlementsChanged(customers: [old.customer, new.customer], cause: .merge)
            .write(since: run.recordedMicroseconds, in: transaction)
        return CustomerMerge(into: new.name, wasMerged: false, things: things)
    }

    /// Ends the old name's running grants; each continues for the new name unless a grant there lasts at least as long.
    private func moveGrants(from old: CustomerID, to new: CustomerID, in transaction: Transaction) throws {
        let merging = try ManualDecision(by: "merge", because: "The name became another customer's.")
        let moved = try ManualGrants(locking: old, in: transaction).end(nil, deciding: merging, in: transaction)
        let grants = try ManualGrants(locking: new, in: transaction)
        let running = try grants.running(in: transaction)
        for grant in moved
        where grants.isRunning(grant) && !running.contains(where: { $0.gives(asMuchAs: grant) }) {
            try grants.end(grant.entitlement, deciding: merging, in: transaction)
            try grants.begin(
                grant.entitlement, until: grant.until,
                deciding: ManualDecision(by: grant.givenBy, because: grant.reason), in: transaction)
        }
    }
}

extension ManualGrants {
    /// The maximum number of a customer's grants that are read.
    static let grantsMax: Int32 = 1000

    fileprivate func running(in transaction: Transaction) throws -> [ManualGrant] {
        try transaction.query(Queries.readManualGrants, .int8s([customer.number]), .int4(Self.grantsMax))
            .map(ManualGrant.init(row:)).filter(isRunning)
    }

    fileprivate func isRunning(_ grant: ManualGrant) -> Bool {
        grant.until.map { $0.microseconds > recordedMicroseconds } ?? true
    }
}

extension ManualGrant {
    /// Returns whether this grant gives the same entitlement for at least as long.
    fileprivate func gives(asMuchAs other: ManualGrant) -> Bool {
        guard entitlement == other.entitlement else { return false }
        guard let until else { return true }
        return other.until.map { $0 <= until } ?? false
    }
}

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
    /// These are the uploads, the subscriptions and the purchases, and the names that were merged into this one before, with
    /// theirs. What was uploaded under the name meanwhile stays with the other customer, except for what a token, a proof or an
    /// order gives to the name; so do manual grants, and what was given meanwhile. Answers about the time between stay the same.
    ///
    /// Throws `notFound` when the app or the name is unknown, `invalid` when the name is not merged.
    package func split(
        _ name: String, of bundleID: BundleID, deciding decision: ManualDecision
    ) async throws -> CustomerSplit {
        try Upload.requireValidCustomerID(name)
        let app = try await ledger.apps.app(bundleID)
        return try await ledger.changingPollers(orCustomers: true) { transaction in
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
        let leaving = try transaction.query(Queries.readNamesUnder, .int8(old.customer.number))
            .map { try $0.int8("customer_id") }
        let merged = try transaction.query(Queries.readMergedContents, .int8s(leaving), .int8(head.customer.number))
        let subscribed = Set(try merged.compactMap { try $0.int8IfPresent("subscription_id") })
        let bought = Set(try merged.compactMap { try $0.int8IfPresent("purchase_id") })
        for (key, draft) in run.subscriptions where subscribed.contains(draft.rowID) {
            run.subscriptions[key]?.give(to: old.customer, named: old.name, because: .split)
        }
        for (key, draft) in run.purchases where bought.contains(draft.rowID) {
            run.purchases[key]?.give(to: old.customer, named: old.name, because: .split)
        }
        let affected = try AffectedCustomers(locking: Set(names.map(\.customer)), in: transaction)
        let staying = names.map(\.customer).filter { !leaving.contains($0.number) }
        try run.splitDeliveries(from: staying, to: old.customer, of: leaving, in: transaction)
        // Each turn that follows is of one of the two customers.
        try transaction.query(
            Queries.splitName, .int8(old.customer.number), .int8s(leaving),
            .timestamptz(microseconds: run.recordedMicroseconds))
        let things = try run.writeHandOver(in: transaction)
        try affected.store(in: transaction)
        // An order of the name that leaves keeps what the other customer was given of it meanwhile.
        try run.decidePayments(of: names.map(\.customer), tying: staying, in: transaction)
        try EntitlementsChanged(customers: [old.customer, head.customer], cause: .split)
            .write(since: run.recordedMicroseconds, in: transaction)
        return things
    }
}
