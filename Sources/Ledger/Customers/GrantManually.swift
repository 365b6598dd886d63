import Postgres
import SQL
package import Subscriptions

extension LedgerCustomers {
    /// Grants an entitlement to a customer manually, from now until `until` (nil: without an end); creates an unknown
    /// customer.
    ///
    /// The customer's running manual grant of the same entitlement ends now and is replaced. Throws `notFound` for an
    /// unknown app, `invalid` for an end in the past.
    package func grant(
        _ entitlement: String, to customer: String, of bundleID: BundleID, until: Instant?,
        deciding decision: ManualDecision
    ) async throws -> ManualGrant {
        try await give(entitlement, to: customer, of: bundleID, until: until, deciding: decision, asked: nil).grant
    }

    /// Does the same once for each `Idempotency-Key`, where the request has one. Throws also `exists` for a key that
    /// made another grant within 24 hours.
    package func give(
        _ entitlement: String, to customer: String, of bundleID: BundleID, until: Instant?,
        deciding decision: ManualDecision, asked request: GrantRequest?
    ) async throws -> GivenGrant {
        try ManualGrant.requireEntitlement(entitlement)
        try Upload.requireValidCustomerID(customer)
        let app = try await ledger.apps.app(bundleID)
        let digest = GrantRequest.digest(entitlement, to: customer, until: until, deciding: decision)
        return try await database.transaction { transaction in
            let grants = try ManualGrants(ofKnownOrNew: customer, appID: app.id, in: transaction)
            let known = try request?.known(digest, app: app.id, at: grants.recordedMicroseconds, in: transaction)
            if let known { return GivenGrant(grant: known, isNew: false) }
            guard until.map({ $0.microseconds > grants.recordedMicroseconds }) ?? true else {
                throw LedgerError(.invalid, "A manual grant ends in the future; give a later instant.")
            }
            try grants.end(entitlement, deciding: decision, in: transaction)
            let given = try grants.begin(entitlement, until: until, deciding: decision, in: transaction)
            try request?.note(given, digest, app: app.id, grants: grants, in: transaction)
            try grants.storeEntitlements(because: .grant, in: transaction)
            try ledger.audit(
                .grantGiven, app: bundleID, customer: customer, detail: ["entitlement": entitlement], in: transaction)
            return GivenGrant(grant: given, isNew: true)
        }
    }

    /// Ends a customer's manual grant of an entitlement now; queries about the time before still find it.
    ///
    /// Throws `notFound` when no such grant is running.
    package func revokeGrant(
        of entitlement: String, from customer: String, of bundleID: BundleID, deciding decision: ManualDecision
    ) async throws -> ManualGrant {
        try ManualGrant.requireEntitlement(entitlement)
        try Upload.requireValidCustomerID(customer)
        let app = try await ledger.apps.app(bundleID)
        return try await database.transaction { transaction in
            let nothing = LedgerError(
                .notFound, "The customer has no running manual grant of \(entitlement); see `perennial customer show`."
            )
            guard let grants = try ManualGrants(of: customer, appID: app.id, in: transaction),
                let ended = try grants.end(entitlement, deciding: decision, in: transaction).first
            else { throw nothing }
            try grants.storeEntitlements(because: .revocation, in: transaction)
            try ledger.audit(
                .grantRevoked, app: bundleID, customer: customer, detail: ["entitlement": entitlement], in: transaction)
            return ended
        }
    }
}

/// The manual grants of one customer, locked against other writers.
struct ManualGrants {
    let customer: CustomerID
    /// The time to record, in microseconds; later than everything recorded of the customer's grants before.
    let recordedMicroseconds: Int64

    /// Locks the customer with this name; nil when there is none.
    init?(of name: String, appID: Int32, in transaction: Transaction) throws {
        let found = try transaction.query(Queries.findCustomers, [.int4s([appID]), .texts([name])])
        guard let row = found.first else { return nil }
        try self.init(locking: CustomerID(number: try row.int8("customer_id")), in: transaction)
    }

    /// Locks the customer with this name; creates an unknown customer.
    init(ofKnownOrNew name: String, appID: Int32, in transaction: Transaction) throws {
        try transaction.query(Queries.insertCustomers, [.int4s([appID]), .texts([name])])
        guard let grants = try Self(of: name, appID: appID, in: transaction) else {
            throw LedgerError(.mismatch, "The customer was not stored; run `perennial migrate`.")
        }
        self = grants
    }

    /// Locks a customer.
    init(locking customer: CustomerID, in transaction: Transaction) throws {
        self.customer = customer
        try transaction.query(Queries.lockGrantee, [.int8(customer.number)])
        guard let clock = try transaction.query(Queries.readManualClock, [.int8(customer.number)]).first else {
            throw LedgerError(.mismatch, "The database gave no time.")
        }
        recordedMicroseconds = try clock.timestamptz("recorded_at")
    }

    /// Stores what the customer may use after the changes, with the event of it.
    func storeEntitlements(because cause: EntitlementsChanged.Cause, in transaction: Transaction) throws {
        try AffectedCustomers(locking: [customer], in: transaction).store(in: transaction)
        try EntitlementsChanged(for: [customer], because: cause).write(since: recordedMicroseconds, in: transaction)
    }

    /// Ends the running grants of an entitlement, nil for all; returns the ended grants, with their former ends.
    @discardableResult
    func end(
        _ entitlement: String?, deciding decision: ManualDecision, in transaction: Transaction
    ) throws -> [ManualGrant] {
        try transaction.query(
            Queries.endManualGrants,
            [
                .int8(customer.number), .text(entitlement), .timestamptz(microseconds: recordedMicroseconds),
                .text(decision.actor), .text(decision.reason),
            ]
        ).map(ManualGrant.init(row:))
    }

    /// Begins a grant of an entitlement.
    @discardableResult
    func begin(
        _ entitlement: String, until: Instant?, deciding decision: ManualDecision, in transaction: Transaction
    ) throws -> ManualGrant {
        let rows = try transaction.query(
            Queries.insertManualGrant,
            [
                .int8(customer.number), .text(entitlement), .instant(until),
                .timestamptz(microseconds: recordedMicroseconds), .text(decision.actor), .text(decision.reason),
            ])
        guard let row = rows.first else { throw LedgerError(.mismatch, "The grant was not stored.") }
        return try ManualGrant(row: row)
    }
}
