import Postgres
import SQL
import Subscriptions

/// What erasing a customer came to.
package struct CustomerErasure: Sendable, Hashable {
    /// The random name under which figures go on.
    package let pseudonym: String
    /// Receipts whose bytes and answers are gone.
    package let receipts: Int
    /// Receipts that stay, because others uploaded them too.
    package let sharedReceipts: Int
    /// Subscriptions and one-time purchases that nobody owns any more.
    package let things: Int
}

extension SubscriptionLedger {
    /// Removes what is personal of a customer and of every name merged into theirs; figures stay under a random name.
    ///
    /// Gone are receipts that nobody else uploaded, with Apple's answers about them, uploads, imported words, account tokens
    /// and reasons of what people decided about them; why they were erased stays. Periods, prices and events stay. What comes
    /// of them later comes of somebody new.
    /// Throws `notFound` when nobody knows them, `busy` while Apple is being asked about a receipt of theirs.
    package func erase(
        _ customer: String, of bundleID: BundleID, deciding decision: HandDecision
    ) async throws -> CustomerErasure {
        try Upload.requireCustomer(customer)
        let app = try await app(bundleID)
        return try await changingCustomers { transaction in
            var people = try LockedPeople(named: [customer], appID: app.id, in: transaction)
            guard let head = people.head(of: customer) else {
                throw LedgerError(.notFound, "\(bundleID) has no customer \(customer).")
            }
            guard !people.isBeingAsked else {
                throw LedgerError(.busy, "Apple is being asked about a receipt of theirs; try again in a minute.")
            }
            let erasure = try people.erase(head.customer, deciding: decision, in: transaction)
            try audit(
                .customerErased, app: bundleID, customer: erasure.pseudonym,
                detail: ["receipts": "\(erasure.receipts)", "things": "\(erasure.things)"],
                decided: AuditedDecision(decision: decision, about: people.names.map(\.customer)), in: transaction)
            return erasure
        }
    }
}

extension LockedPeople {
    fileprivate mutating func erase(
        _ head: CustomerID, deciding decision: HandDecision, in transaction: Transaction
    ) throws -> CustomerErasure {
        let ids = Parameter.int8s(names.map(\.customer.number))
        let now = Parameter.timestamptz(microseconds: run.recordedMicroseconds)
        run.release(from: Set(names.map(\.customer)))
        let things = try run.writeHandOver(in: transaction)
        try eraseReceipts(at: now, in: transaction)
        try transaction.query(Queries.eraseUploads, [ids])
        try transaction.query(Queries.eraseTokens, [ids, .int8s(soleReceipts)])
        for name in names {
            try HandGrants(locking: name.customer, in: transaction).end(nil, deciding: decision, in: transaction)
        }
        let renamed = try transaction.query(Queries.erasePeople, [ids, now])
        guard let pseudonym = try renamed.first(where: { try $0.bool("is_head") })?.text("name") else {
            throw LedgerError(.mismatch, "The customer was not renamed; nothing was changed.")
        }
        return CustomerErasure(
            pseudonym: pseudonym, receipts: soleReceipts.count, sharedReceipts: sharedReceipts.count, things: things)
    }

    /// Another receipt polls what theirs did, where there is one.
    private mutating func eraseReceipts(at now: Parameter, in transaction: Transaction) throws {
        guard !soleReceipts.isEmpty else { return }
        try run.planPolling()
        run.releaseUnable()
        try run.writePolling(in: transaction)
        try transaction.query(Queries.eraseReceipts, [.int8s(soleReceipts), now])
    }
}
