import Foundation
import Postgres
import SQL
import Subscriptions

/// What a person or a key did; the raw value is the word that `perennial.audit_log` tells.
package enum AuditedAction: String, Sendable, CaseIterable {
    case appAdded = "app.added"
    case appChanged = "app.changed"
    case secretRotated = "app.secret_rotated"
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
    case feedRenewed = "feed.renewed"
    case coverageRepaired = "coverage.repaired"
    case rebuilt = "rebuilt"
    case pruned = "pruned"
}

/// A decision about customers as the audit keeps it: until one of them is erased, for its reason may speak of each.
struct AuditedDecision: Sendable {
    let decision: HandDecision
    let about: [CustomerID]

    /// Who decided and why, under the names that `perennial.audit_log` tells.
    var detail: [String: String] { ["decided_by": decision.actor, "reason": decision.reason] }
}

extension SubscriptionLedger {
    /// Remembers, in the transaction of the write itself, who did it; a ledger in nobody's hands remembers nothing.
    ///
    /// - Parameters:
    ///   - customer: The operator's own id; a customer who is not stored by then is not remembered.
    ///   - detail: What else an auditor wants to know; never a secret, a receipt or a customer's name.
    ///   - decided: The decision that it carries out; its reason is kept until somebody it is about is erased.
    func audit(
        _ action: AuditedAction, app bundleID: BundleID? = nil, customer: String? = nil, receipt: ReceiptID? = nil,
        detail: [String: String] = [:], decided: AuditedDecision? = nil, in transaction: Transaction
    ) throws {
        guard let actor else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let told = detail.merging(decided?.detail ?? [:]) { told, _ in told }
        try transaction.query(
            Queries.insertAudit,
            [
                .int4(actor.key), .text(actor.user), .text(action.rawValue), .text(bundleID?.text), .text(customer),
                .int8(receipt?.number), .jsonb(String(decoding: try encoder.encode(told), as: UTF8.self)),
                .int8s(decided?.about.map(\.number) ?? []),
            ])
    }

    /// The same in a transaction of its own, for what is more than one.
    package func audit(
        _ action: AuditedAction, app bundleID: BundleID? = nil, customer: String? = nil, receipt: ReceiptID? = nil,
        detail: [String: String] = [:]
    ) async throws {
        guard actor != nil else { return }
        try await database.transaction { transaction in
            try audit(
                action, app: bundleID, customer: customer, receipt: receipt, detail: detail, in: transaction)
        }
    }

    /// Runs one writing statement and remembers who did it, if it changed something.
    func write(
        _ file: SQLFile, _ parameters: [Parameter], audited action: AuditedAction, app bundleID: BundleID? = nil,
        detail: [String: String] = [:]
    ) async throws -> [Row] {
        try await database.transaction { transaction in
            let rows = try transaction.query(file, parameters)
            if !rows.isEmpty { try audit(action, app: bundleID, detail: detail, in: transaction) }
            return rows
        }
    }
}
