import Postgres
import SQL
package import Subscriptions

/// The result of erasing a customer.
package struct CustomerErasure: Sendable, Hashable {
    /// The random name that replaces the customer's names, for the figures that stay.
    package let pseudonym: String
    /// Receipts whose bytes and answers were deleted.
    package let receipts: Int
    /// Receipts that stay because other customers uploaded them too.
    package let sharedReceipts: Int
    /// Subscriptions and one-time purchases that have no owner any more.
    package let things: Int
}

extension LedgerCustomers {
    /// Removes the personal data of a customer and of every name merged into it; figures stay under a random name.
    ///
    /// It deletes the receipts that no other customer uploaded, with Apple's answers about them, and the uploads,
    /// provisional data from imports, account tokens and reasons of manual decisions about the customer. Of orders it
    /// deletes the price shown, the device, the key and what devices reported; it cancels those that are open, or paid and
    /// not delivered, and skips due deliveries. The reason of the erasure, periods, prices and events stay. What the customer
    /// sends later belongs to a new customer.
    ///
    /// Throws `unknownApp`, `notFound` for an unknown customer, `busy` while Apple is asked about one of the customer's receipts.
    package func erase(
        _ customer: String, of bundleID: BundleID, deciding decision: ManualDecision
    ) async throws -> CustomerErasure {
        try Upload.requireValidCustomerID(customer)
        let app = try await ledger.apps.app(bundleID)
        return try await ledger.changingPollers(orCustomers: true) { transaction in
            var people = try LockedCustomers(named: [customer], appID: app.id, in: transaction)
            guard let head = people.head(of: customer) else {
                throw LedgerError(.notFound, "\(bundleID) has no customer \(customer).")
            }
            guard !people.isBeingAsked else {
                throw LedgerError(.busy, "Apple is being asked about a receipt of theirs; try again in a minute.")
            }
            let erasure = try people.erase(head.customer, deciding: decision, in: transaction)
            try ledger.audit(
                .customerErased, app: bundleID, customer: erasure.pseudonym,
                detail: ["receipts": "\(erasure.receipts)", "things": "\(erasure.things)"],
                decided: AuditedDecision(decision: decision, about: people.names.map(\.customer)), in: transaction)
            return erasure
        }
    }
}

extension LockedCustomers {
    fileprivate mutating func erase(
        _ head: CustomerID, deciding decision: ManualDecision, in transaction: Transaction
    ) throws -> CustomerErasure {
        let ids = Parameter.int8s(names.map(\.customer.number))
        let now = Parameter.timestamptz(microseconds: run.recordedMicroseconds)
        let affected = try AffectedCustomers(locking: Set(names.map(\.customer)), in: transaction)
        run.release(from: Set(names.map(\.customer)))
        let things = try run.writeHandOver(in: transaction)
        try eraseReceipts(at: now, in: transaction)
        try transaction.query(Queries.eraseUploads, ids)
        try transaction.query(Queries.eraseTokens, ids, .int8s(soleReceipts))
        try eraseOrders(of: ids, at: now, in: transaction)
        for name in names {
            try ManualGrants(locking: name.customer, in: transaction).end(nil, deciding: decision, in: transaction)
        }
        let renamed = try transaction.query(Queries.eraseCustomers, ids, now)
        guard let pseudonym = try renamed.first(where: { try $0.bool("is_head") })?.text("name") else {
            throw LedgerError(.mismatch, "The customer was not renamed; nothing was changed.")
        }
        try affected.store(in: transaction)
        return CustomerErasure(
            pseudonym: pseudonym, receipts: soleReceipts.count, sharedReceipts: sharedReceipts.count, things: things)
    }

    /// Empties the orders, cancels unfinished ones, and skips what is due, except for what another customer owns by now: that
    /// is due to this one. It comes after the tokens in purchases are removed, which are found by those of the orders.
    private func eraseOrders(of ids: Parameter, at now: Parameter, in transaction: Transaction) throws {
        try transaction.query(Queries.eraseOrders, ids, now)
        let owned = try transaction.query(Queries.findOwnersOfErased, ids)
        try transaction.query(
            Queries.handOverDue, .int8s(try owned.map { try $0.int8("purchase_id") }),
            .int8s(owned.map { _ in Int64?.none }), .int8s(try owned.map { try $0.int8("customer_id") }),
            .bools(owned.map { _ in true }))
        let skipped = try transaction.query(Queries.skipErased, ids, now)
        guard !skipped.isEmpty else { return }
        let purchases = Parameter.int8s(try skipped.compactMap { try $0.int8IfPresent("purchase_id") })
        let subscriptions = Parameter.int8s(try skipped.compactMap { try $0.int8IfPresent("subscription_id") })
        // Another customer may own such a purchase by now, and wait for it.
        try transaction.query(Queries.shareDelivered, purchases, .int8s([Int64]()))
        try transaction.query(Queries.storeTurns, purchases, subscriptions)
        try transaction.query(Queries.advanceOrders, purchases, subscriptions)
    }

    /// Empties the receipts; another receipt takes over what they polled, if there is one.
    private mutating func eraseReceipts(at now: Parameter, in transaction: Transaction) throws {
        guard !soleReceipts.isEmpty else { return }
        try run.planPolling()
        run.releaseUnable()
        try run.writePolling(in: transaction)
        try transaction.query(Queries.eraseReceipts, .int8s(soleReceipts), now)
    }
}

/// Everything stored about one customer.
package struct CustomerExport: Sendable {
    /// A subscription or purchase that a customer owns or owned.
    package struct Ownership: Sendable, Hashable {
        package let originalTransactionID: OriginalTransactionID
        package let environment: StoreEnvironment
        /// Whether it is a subscription rather than a one-time purchase.
        package let isSubscription: Bool
        package let productID: ProductID?
        package let state: String?
        /// A subscription's expiry or a purchase's refund.
        package let endsAt: Instant?
        /// The cause of the ownership; nil when it is no longer known.
        package let cause: OwnershipCause?
        /// The start of the ownership; nil if there is none.
        package let since: Instant?
        /// The end of the ownership; nil as long as nothing changes.
        package let until: Instant?
        /// The name of the next owner.
        package let wentTo: String?

        init(row: Row) throws {
            originalTransactionID = try row.id("original_transaction_id")
            environment = try row.word("environment")
            isSubscription = try row.bool("is_subscription")
            productID = try row.idIfPresent("product_id")
            state = try row.textIfPresent("state")
            endsAt = try row.instantIfPresent("ends_at")
            cause = try row.wordIfPresent("cause")
            since = try row.instantIfPresent("since")
            until = try row.instantIfPresent("until")
            wentTo = try row.textIfPresent("went_to")
        }
    }

    /// The maximum number of receipts, ownerships, grants, orders, changes of each order and deliveries returned.
    package static let linesMax: Int32 = 200

    /// The operator's own id of the customer; for a merged name, the name it was merged into.
    package let name: String
    package let otherNames: [String]
    package let entitlements: [Entitlement]
    /// Current and former ownerships, newest first.
    package let ownerships: [Ownership]
    /// Manual grants, newest first.
    package let grants: [ManualGrant]
    /// The customer's receipts, oldest first.
    package let receipts: [Reasons.ReceiptStanding]
    /// The newest orders with their logs, the newest deliveries, and the balances of credits.
    package let purchases: PurchaseHistory
}

extension LedgerCustomers {
    /// Returns everything stored about a customer; throws `notFound` when the app or the customer is unknown.
    package func export(_ name: String, of bundleID: BundleID) async throws -> CustomerExport {
        try Upload.requireValidCustomerID(name)
        let app = try await ledger.apps.app(bundleID)
        let entitlements = try await entitlements(app: bundleID, customer: name, fromPrimary: true)
        return try await database.transaction { transaction in
            try transaction.query(Queries.holdSnapshot)
            let people = try transaction.query(Queries.findNamedCustomers, .int4(app.id), .texts([name]))
            guard let head = try people.first(where: { try $0.bool("is_head") }) else {
                throw LedgerError(.notFound, "\(bundleID) has no customer \(name).")
            }
            let customers = try people.map { try $0.int8("customer_id") }
            let ids = Parameter.int8s(customers)
            let limit = Parameter.int4(CustomerExport.linesMax)
            return CustomerExport(
                name: try head.text("name"),
                otherNames: try people.filter { try $0.bool("is_head") == false }.map { try $0.text("name") },
                entitlements: entitlements,
                ownerships: try transaction.query(Queries.readOwnerships, ids, limit)
                    .map(CustomerExport.Ownership.init(row:)),
                grants: try transaction.query(Queries.readManualGrants, ids, limit).map(ManualGrant.init(row:)),
                receipts: try transaction.query(Queries.readStandings, .int8(try head.int8("customer_id")), limit)
                    .map(Reasons.ReceiptStanding.init(row:)),
                purchases: try PurchaseHistory(of: customers, limit: CustomerExport.linesMax, in: transaction))
        }
    }
}
