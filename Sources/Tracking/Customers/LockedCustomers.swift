import Postgres
import SQL
package import Subscriptions

/// The customers behind some names, with everything they have, locked in the order that all writers use.
struct LockedCustomers {
    struct Name: Hashable {
        let customer: CustomerID
        let name: String
        /// The customer the name stands for; its own customer unless it was merged.
        let head: CustomerID
    }

    /// Every name, merged ones included.
    let names: [Name]
    /// Receipts that are of no other customer.
    let soleReceipts: [Int64]
    /// Receipts that other customers uploaded too, or that were sent for their orders.
    let sharedReceipts: [Int64]
    /// Whether Apple is being asked about one of the receipts at this moment.
    let isBeingAsked: Bool
    /// The subscriptions and purchases that these customers own or that their sole receipts poll.
    var run: SettlementRun

    /// Returns the customer a name stands for; nil when the name is unknown.
    func head(of name: String) -> Name? {
        guard let known = names.first(where: { $0.name == name }) else { return nil }
        return names.first { $0.customer == known.head }
    }

    /// Locks the customers behind the names; throws `busy` when their data changes meanwhile.
    init(named texts: [String], appID: Int32, in transaction: Transaction) throws {
        let found = try Self.find(texts, appID: appID, in: transaction)
        let ids = Parameter.int8s(found.map(\.customer.number))
        let uploaded = try UploadedReceipts(of: ids, in: transaction)
        // What only these customers' receipts poll, with the receipts that would take over if these were removed.
        let question = FoundPollers.Question(polledBy: uploaded.sole, unable: uploaded.sole)
        let pollers = try LockedPollers(uploaded.all, and: FoundPollers(question, in: transaction), in: transaction)
        try pollers.foldClocks(in: transaction)
        isBeingAsked = uploaded.all.contains { pollers.schedules[$0]?.isLeased ?? false }
        soleReceipts = uploaded.sole.map(\.number)
        sharedReceipts = uploaded.shared.map(\.number)
        let subscriptions = try transaction.query(Queries.lockOwned, ids, .int8s(soleReceipts), .int4(nil), .text(nil))
        let purchases = try transaction.query(
            Queries.lockOwnedPurchases, ids, .int8s(soleReceipts), .int4(nil), .text(nil))
        try transaction.query(Queries.lockCustomers, ids)
        try pollers.found.requireUnchanged(in: transaction)
        run = try SettlementRun(
            locked: subscriptions, purchases: purchases, pollers: pollers, unable: uploaded.sole, in: transaction)
        names = try Self.find(texts, appID: appID, in: transaction)
        guard let now = try transaction.query(Queries.countOwned, ids).first, names == found,
            try now.int8("things") == run.thingsOwned(by: Set(found.map(\.customer))),
            try UploadedReceipts(of: ids, in: transaction) == uploaded
        else { throw LedgerError(.busy, "What the customer has is changing at this moment; try again.") }
    }

    private static func find(_ texts: [String], appID: Int32, in transaction: Transaction) throws -> [Name] {
        try transaction.query(Queries.findNamedCustomers, .int4(appID), .texts(texts)).map { row in
            Name(
                customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
                head: CustomerID(number: try row.int8("head_id")))
        }
    }
}

/// The receipts that the customers uploaded, that were sent for their orders, or that notifications made about what they own.
private struct UploadedReceipts: Equatable {
    /// Receipts that are of no other customer.
    let sole: [ReceiptID]
    let shared: [ReceiptID]

    var all: [ReceiptID] { sole + shared }

    init(of customers: Parameter, in transaction: Transaction) throws {
        let rows = try transaction.query(Queries.readReceiptsOf, customers)
        sole = try rows.filter { try $0.bool("sole") }.map { ReceiptID(try $0.int8("receipt_id")) }
        shared = try rows.filter { try $0.bool("sole") == false }.map { ReceiptID(try $0.int8("receipt_id")) }
    }
}

extension SubscriptionDraft {
    /// Gives it to a customer, whatever the policy: a version of its own, with its event.
    mutating func give(to customer: CustomerID, named name: String, because cause: OwnershipCause) {
        guard let state, let change = ownership.give(to: customer, named: name, because: cause) else { return }
        note(change, of: state.timeline.span(at: state.asOf)?.productID ?? "")
    }
}

extension PurchaseDraft {
    /// Gives it to a customer, whatever the policy: a version of its own, with its event.
    mutating func give(to customer: CustomerID, named name: String, because cause: OwnershipCause) {
        guard state != nil, let change = ownership.give(to: customer, named: name, because: cause) else { return }
        note(change)
    }
}

extension SettlementRun {
    /// Gives the locked subscriptions and purchases to a customer: all, or only those that one of `owners` owns.
    mutating func give(
        from owners: Set<CustomerID>? = nil, to customer: CustomerID, named name: String, because cause: OwnershipCause
    ) {
        for key in subscriptions.keys where isOwned(subscriptions[key]?.ownership, by: owners) {
            subscriptions[key]?.give(to: customer, named: name, because: cause)
        }
        for key in purchases.keys where isOwned(purchases[key]?.ownership, by: owners) {
            purchases[key]?.give(to: customer, named: name, because: cause)
        }
    }

    /// Removes the owner from the locked subscriptions and purchases that one of `owners` owns: a version without an event.
    mutating func release(from owners: Set<CustomerID>) {
        for key in subscriptions.keys where isOwned(subscriptions[key]?.ownership, by: owners) {
            subscriptions[key]?.ownership.release()
            subscriptions[key]?.version += 1
        }
        for key in purchases.keys where isOwned(purchases[key]?.ownership, by: owners) {
            purchases[key]?.ownership.release()
            purchases[key]?.version += 1
        }
    }

    /// Returns the number of locked subscriptions and purchases that one of `owners` owns.
    func thingsOwned(by owners: Set<CustomerID>) -> Int {
        subscriptions.values.count { isOwned($0.ownership, by: owners) }
            + purchases.values.count { isOwned($0.ownership, by: owners) }
    }

    /// Writes the changes of owner, nothing else; returns their number.
    func writeHandOver(in transaction: Transaction) throws -> Int {
        let changed = subscriptions.values.filter(\.ownership.isChanged)
        let bought = purchases.values.filter(\.ownership.isChanged)
        guard !changed.isEmpty || !bought.isEmpty else { return 0 }
        try raiseVersions(of: changed, bought, in: transaction)
        try writeEvents(in: transaction)
        try writeOwnerships(in: transaction)
        try storeTurns(in: transaction)
        return changed.count + bought.count
    }

    private func isOwned(_ draft: OwnershipDraft?, by owners: Set<CustomerID>?) -> Bool {
        guard let owners else { return true }
        return draft?.owner.map { owners.contains($0.customer) } ?? false
    }
}

extension LedgerCustomers {
    /// Assigns a subscription or one-time purchase to a customer manually, who need not exist; returns how many changed
    /// their owner. Throws `notFound` when the app is unknown or has nothing with this id.
    package func assign(
        _ id: OriginalTransactionID, to customer: String, of bundleID: BundleID, deciding decision: ManualDecision
    ) async throws -> Int {
        try Upload.requireValidCustomerID(customer)
        let app = try await ledger.apps.app(bundleID)
        return try await ledger.changingPollers(orCustomers: true) { transaction in
            let name = [Parameter.int4(app.id), .text(id.text)]
            let subscriptions = try transaction.query(Queries.lockOwned, [.int8s([]), .int8s([])] + name)
            let purchases = try transaction.query(Queries.lockOwnedPurchases, [.int8s([]), .int8s([])] + name)
            guard !subscriptions.isEmpty || !purchases.isEmpty else {
                throw LedgerError(.notFound, "\(bundleID) has no subscription or purchase \(id).")
            }
            try transaction.query(Queries.insertCustomers, .int4s([app.id]), .texts([customer]))
            let found = try transaction.query(Queries.findCustomers, .int4s([app.id]), .texts([customer]))
            guard let row = found.first else { throw LedgerError.erasedMeanwhile }
            var run = try SettlementRun(locked: subscriptions, purchases: purchases, in: transaction)
            let owner = CustomerID(number: try row.int8("customer_id"))
            let ownerships = run.subscriptions.values.map(\.ownership) + run.purchases.values.map(\.ownership)
            let people = Set(ownerships.compactMap(\.owner?.customer)).union([owner])
            run.give(to: owner, named: try row.text("called"), because: .assignment)
            let affected = try run.lockAffectedCustomers(in: transaction)
            let things = try run.writeHandOver(in: transaction)
            try affected.store(in: transaction)
            try run.decidePayments(in: transaction)
            try run.handOverDue(in: transaction)
            if things > 0 {
                try ledger.audit(
                    .ownerAssigned, app: bundleID, customer: customer, detail: ["original_transaction_id": id.text],
                    decided: AuditedDecision(decision: decision, about: Array(people)), in: transaction)
            }
            return things
        }
    }
}
