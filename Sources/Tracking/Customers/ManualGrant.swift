import Postgres
import SQL
package import Subscriptions

/// A manual decision: its author and its reason.
package struct ManualDecision: Sendable, Hashable {
    package static let actorCharactersMax = 255
    package static let reasonCharactersMax = 1000

    package let actor: String
    /// For later readers, in words.
    package let reason: String

    /// Creates a decision; throws `invalid` when the author or the reason is missing, blank, too long or contains NUL.
    package init(by actor: String, because reason: String) throws(LedgerError) {
        try Self.requireWords(actor, "A name of who decides", charactersMax: Self.actorCharactersMax)
        try Self.requireWords(reason, "A reason", charactersMax: Self.reasonCharactersMax)
        self.actor = actor
        self.reason = reason
    }

    /// Throws `invalid` unless the text has 1 to `charactersMax` characters, more than blanks and no NUL.
    static func requireWords(_ text: String, _ what: String, charactersMax: Int) throws(LedgerError) {
        try require(text, what, charactersMax: charactersMax)
        guard !text.allSatisfy(\.isWhitespace) else { throw LedgerError(.invalid, "\(what) is more than blanks.") }
    }

    /// Throws `invalid` unless the text has 1 to `charactersMax` characters and no NUL.
    static func require(_ text: String, _ what: String, charactersMax: Int) throws(LedgerError) {
        guard !text.unicodeScalars.contains("\0") else { throw LedgerError(.invalid, "\(what) cannot hold a NUL.") }
        let count = text.unicodeScalars.count
        guard (1...charactersMax).contains(count) else {
            throw LedgerError(.invalid, "\(what) has 1 to \(charactersMax) characters; this one has \(count).")
        }
    }
}

/// A manual grant of an entitlement, for support, testers and compensation; Apple's answers and revenue leave it out.
package struct ManualGrant: Sendable, Hashable {
    package static let entitlementCharactersMax = 255

    package let entitlement: String
    package let since: Instant
    package let until: Instant?
    package let givenBy: String
    package let reason: String
    /// The author of an early end; nil when there was none.
    package let endedBy: String?
    package let endReason: String?

    /// Throws `invalid` unless the text can be an entitlement's name.
    package static func requireEntitlement(_ name: String) throws(LedgerError) {
        try ManualDecision.require(name, "The name of an entitlement", charactersMax: entitlementCharactersMax)
    }

    init(row: Row) throws {
        entitlement = try row.text("entitlement")
        since = try row.instant("since")
        until = try row.instantIfPresent("until")
        givenBy = try row.text("given_by")
        reason = try row.text("reason")
        endedBy = try row.textIfPresent("ended_by")
        endReason = try row.textIfPresent("end_reason")
    }
}

/// The `Idempotency-Key` of a manual grant: a repetition within 24 hours gets the first answer, and grants nothing.
package struct GrantRequest: Sendable, Hashable {
    let key: String

    /// Creates a request; throws `invalid` for an empty or too long key.
    package init(key: String) throws(LedgerError) {
        let bytesMax = LedgerOrders.requestKeyBytesMax
        guard (1...bytesMax).contains(key.utf8.count), !key.unicodeScalars.contains("\0") else {
            throw LedgerError(.invalid, "An Idempotency-Key has 1 to \(bytesMax) bytes.")
        }
        self.key = key
    }

    /// Returns SHA-256 of everything that is asked.
    static func digest(
        _ entitlement: String, to customer: String, until: Instant?, deciding decision: ManualDecision
    ) -> [UInt8] {
        [entitlement, customer, until?.iso8601 ?? "", decision.actor, decision.reason].sha256
    }

    /// Returns the grant that the key made before. Throws `exists` where it made another one.
    func known(_ digest: [UInt8], app: Int32, at now: Int64, in transaction: Transaction) throws -> ManualGrant? {
        let found = try transaction.query(
            Queries.findGrantRequest, .int4(app), .text(key), .timestamptz(microseconds: now))
        guard let row = found.first else { return nil }
        guard try row.bytea("request") == digest else { throw Self.taken }
        return try ManualGrant(row: row)
    }

    /// Notes the grant that the key made. Throws `exists` where another request took the key meanwhile.
    func note(
        _ grant: ManualGrant, _ digest: [UInt8], app: Int32, grants: ManualGrants, in transaction: Transaction
    ) throws {
        let noted = try transaction.query(
            Queries.insertGrantRequest, .int4(app), .text(key), .bytea(digest), .int8(grants.customer.number),
            .text(grant.entitlement), .timestamptz(microseconds: grants.recordedMicroseconds))
        guard !noted.isEmpty else { throw Self.taken }
    }

    private static let taken = LedgerError(.exists, "This Idempotency-Key made another grant; use a key of its own.")
}

extension LedgerCustomers {
    /// Grants an entitlement to a customer manually, from now until `until` (nil: without an end), in place of a running
    /// one; creates an unknown customer. Throws `unknownApp` for an unknown app, `invalid` for an end in the past.
    package func grant(
        _ entitlement: String, to customer: String, of bundleID: BundleID, until: Instant?,
        deciding decision: ManualDecision
    ) async throws -> ManualGrant {
        try await give(entitlement, to: customer, of: bundleID, until: until, deciding: decision, asked: nil).grant
    }

    /// Does the same once for each `Idempotency-Key`. Returns also whether this call gave the grant and no earlier one with
    /// the same key. Throws `exists` for a key that made another grant within 24 hours.
    package func give(
        _ entitlement: String, to customer: String, of bundleID: BundleID, until: Instant?,
        deciding decision: ManualDecision, asked request: GrantRequest?
    ) async throws -> (grant: ManualGrant, isNew: Bool) {
        try ManualGrant.requireEntitlement(entitlement)
        try Upload.requireValidCustomerID(customer)
        let app = try await ledger.apps.app(bundleID)
        let digest = GrantRequest.digest(entitlement, to: customer, until: until, deciding: decision)
        return try await ledger.changingPollers(orCustomers: true) { transaction in
            let grants = try ManualGrants(ofKnownOrNew: customer, appID: app.id, in: transaction)
            let known = try request?.known(digest, app: app.id, at: grants.recordedMicroseconds, in: transaction)
            if let known { return (known, false) }
            guard until.map({ $0.microseconds > grants.recordedMicroseconds }) ?? true else {
                throw LedgerError(.invalid, "A manual grant ends in the future; give a later instant.")
            }
            try grants.end(entitlement, deciding: decision, in: transaction)
            let given = try grants.begin(entitlement, until: until, deciding: decision, in: transaction)
            try request?.note(given, digest, app: app.id, grants: grants, in: transaction)
            try grants.storeEntitlements(because: .grant, in: transaction)
            try ledger.audit(
                .grantGiven, app: bundleID, customer: customer, detail: ["entitlement": entitlement], in: transaction)
            return (given, true)
        }
    }

    /// Ends a customer's manual grant of an entitlement now; throws `notFound` when none is running.
    package func revokeGrant(
        of entitlement: String, from customer: String, of bundleID: BundleID, deciding decision: ManualDecision
    ) async throws -> ManualGrant {
        try ManualGrant.requireEntitlement(entitlement)
        try Upload.requireValidCustomerID(customer)
        let app = try await ledger.apps.app(bundleID)
        return try await ledger.changingPollers(orCustomers: true) { transaction in
            guard let grants = try ManualGrants(of: customer, appID: app.id, in: transaction),
                let ended = try grants.end(entitlement, deciding: decision, in: transaction).first
            else {
                throw LedgerError(
                    .notFound,
                    "The customer has no running manual grant of \(entitlement); see `perennial customer show`.")
            }
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
        let found = try transaction.query(Queries.findCustomers, .int4s([appID]), .texts([name]))
        guard let row = found.first else { return nil }
        try self.init(locking: CustomerID(number: try row.int8("customer_id")), in: transaction)
    }

    /// Locks the customer with this name; creates an unknown customer.
    init(ofKnownOrNew name: String, appID: Int32, in transaction: Transaction) throws {
        try transaction.query(Queries.insertCustomers, .int4s([appID]), .texts([name]))
        guard let grants = try Self(of: name, appID: appID, in: transaction) else {
            throw LedgerError.erasedMeanwhile
        }
        self = grants
    }

    init(locking customer: CustomerID, in transaction: Transaction) throws {
        self.customer = customer
        try transaction.query(Queries.lockGrantee, .int8(customer.number))
        guard let clock = try transaction.query(Queries.readManualClock, .int8(customer.number)).first else {
            throw LedgerError(.mismatch, "The database gave no time.")
        }
        recordedMicroseconds = try clock.timestamptz("recorded_at")
    }

    /// Stores what the customer may use after the changes, with the event of it.
    func storeEntitlements(because cause: EntitlementsChanged.Cause, in transaction: Transaction) throws {
        try AffectedCustomers(locking: [customer], in: transaction).store(in: transaction)
        try EntitlementsChanged(customers: [customer], cause: cause).write(since: recordedMicroseconds, in: transaction)
    }

    /// Ends the running grants of an entitlement, nil for all; returns the ended grants, with their former ends.
    @discardableResult
    func end(
        _ entitlement: String?, deciding decision: ManualDecision, in transaction: Transaction
    ) throws -> [ManualGrant] {
        try transaction.query(
            Queries.endManualGrants, .int8(customer.number), .text(entitlement),
            .timestamptz(microseconds: recordedMicroseconds), .text(decision.actor), .text(decision.reason)
        ).map(ManualGrant.init(row:))
    }

    @discardableResult
    func begin(
        _ entitlement: String, until: Instant?, deciding decision: ManualDecision, in transaction: Transaction
    ) throws -> ManualGrant {
        let rows = try transaction.query(
            Queries.insertManualGrant, .int8(customer.number), .text(entitlement), .instant(until),
            .timestamptz(microseconds: recordedMicroseconds), .text(decision.actor), .text(decision.reason))
        guard let row = rows.first else { throw LedgerError(.mismatch, "The grant was not stored.") }
        return try ManualGrant(row: row)
    }
}
