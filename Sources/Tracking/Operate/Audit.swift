import JSON
import Postgres
import SQL
package import Subscriptions

/// The actor of a change, as the audit log records it.
package enum Actor: Sendable, Hashable {
    /// A caller of the HTTP API, by the number of its key.
    case key(Int32)
    /// The user who runs a command, by operating-system user name.
    case user(String)

    var key: Int32? { if case .key(let number) = self { number } else { nil } }

    var user: String? { if case .user(let name) = self { name } else { nil } }
}

extension SubscriptionLedger {
    /// Returns the same ledger, which audits its writes as those of `actor`. Workers use one without: it audits nothing.
    package func acting(as actor: Actor) -> SubscriptionLedger {
        var ledger = self
        ledger.actor = actor
        return ledger
    }
}

/// An audited action of a user or a key; the raw value is the word that `perennial.audit_log` shows.
package enum AuditedAction: String, Sendable, CaseIterable {
    case appAdded = "app.added"
    case appChanged = "app.changed"
    case appRemoved = "app.removed"
    case secretRotated = "app.secret_rotated"
    case offerKeyStored = "app.offer_key_stored"
    case offerKeyRemoved = "app.offer_key_removed"
    case serverKeyStored = "app.server_key_stored"
    case serverKeyRemoved = "app.server_key_removed"
    case catalogApplied = "catalog.applied"
    case keyCreated = "key.created"
    case keyRevoked = "key.revoked"
    case receiptStored = "receipt.stored"
    case receiptChecked = "receipt.checked"
    case importOpened = "import.opened"
    case grantGiven = "grant.given"
    case grantRevoked = "grant.revoked"
    case ownerAssigned = "customer.assigned"
    case customerMerged = "customer.merged"
    case customerSplit = "customer.split"
    case customerErased = "customer.erased"
    case signedIn = "admin.signed_in"
    case signInRefused = "admin.sign_in_refused"
    case signedOut = "admin.signed_out"
    case orderCancelled = "order.cancelled"
    case deliverySkipped = "delivery.skipped"
    case deliveriesAcknowledged = "delivery.acknowledged"
    case supportRead = "support.read"
    case supportRequested = "support.requested"
    case webhookAdded = "webhook.added"
    case webhookChanged = "webhook.changed"
    case webhookRemoved = "webhook.removed"
    case webhookSecretRotated = "webhook.secret_rotated"
    case webhookEventSkipped = "webhook.event_skipped"
    case webhookReplayed = "webhook.replayed"
    case webhookRetried = "webhook.retried"
    case feedRenewed = "feed.renewed"
    case coverageRepaired = "coverage.repaired"
    case rebuilt = "rebuilt"
    case pruned = "pruned"
}

/// A manual decision about customers in the audit log, kept until one of them is erased: its reason may mention each.
struct AuditedDecision: Sendable {
    let decision: ManualDecision
    let about: [CustomerID]

    /// The author and the reason of the decision, under the names that `perennial.audit_log` shows.
    var detail: [String: String] { ["decided_by": decision.actor, "reason": decision.reason] }
}

extension SubscriptionLedger {
    /// Records the actor of a write in the transaction of the write; does nothing without an actor. It leaves out a
    /// customer who is not stored by then. `detail` never has a secret, a receipt or a customer's name.
    func audit(
        _ action: AuditedAction, app bundleID: BundleID? = nil, customer: String? = nil, receipt: ReceiptID? = nil,
        detail: [String: String] = [:], decided: AuditedDecision? = nil, in transaction: Transaction
    ) throws {
        guard let actor else { return }
        let whole = detail.merging(decided?.detail ?? [:]) { own, _ in own }
        try transaction.query(
            Queries.insertAudit, .int4(actor.key), .text(actor.user), .text(action.rawValue), .text(bundleID?.text),
            .text(customer), .int8(receipt?.number),
            .jsonb(JSONValue.object(whole.mapValues(JSONValue.string)).rendered()),
            .int8s(decided?.about.map(\.number) ?? []))
    }

    /// Records an action in a transaction of its own, for an action that consists of several writes.
    package func audit(
        _ action: AuditedAction, app bundleID: BundleID? = nil, customer: String? = nil, receipt: ReceiptID? = nil,
        detail: [String: String] = [:]
    ) async throws {
        guard actor != nil else { return }
        try await database.transaction { transaction in
            try audit(action, app: bundleID, customer: customer, receipt: receipt, detail: detail, in: transaction)
        }
    }
}

extension LedgerFacet {
    func write(
        _ file: SQLFile, _ parameters: Parameter..., audited action: AuditedAction, app bundleID: BundleID? = nil,
        detail: [String: String] = [:]
    ) async throws -> [Row] {
        try await write(file, parameters, audited: action, app: bundleID, detail: detail)
    }

    /// Runs one writing statement and records the actor if the statement returned a row.
    func write(
        _ file: SQLFile, _ parameters: [Parameter], audited action: AuditedAction, app bundleID: BundleID? = nil,
        detail: [String: String] = [:]
    ) async throws -> [Row] {
        try await database.transaction { transaction in
            let rows = try transaction.query(file, parameters)
            if !rows.isEmpty { try ledger.audit(action, app: bundleID, detail: detail, in: transaction) }
            return rows
        }
    }
}
