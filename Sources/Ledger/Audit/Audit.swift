import Foundation
import Postgres
import SQL
import Subscriptions

/// What a person or a key did; the raw value is the word that `perennial.audit_log` tells.
public enum AuditedAction: String, Sendable, CaseIterable {
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
    case rebuilt = "rebuilt"
    case pruned = "pruned"
}

extension SubscriptionLedger {
    /// Remembers, in the transaction of the write itself, who did it; a ledger in nobody's hands remembers nothing.
    ///
    /// - Parameters:
    ///   - customer: The operator's own id; a customer who is not stored by then is not remembered.
    ///   - detail: What else an auditor wants to know; never a secret, a receipt or a customer's name.
    func audit(
        _ action: AuditedAction, app bundleID: BundleID? = nil, customer: String? = nil, receipt: ReceiptID? = nil,
        detail: [String: String] = [:], in transaction: Transaction
    ) throws {
        guard let actor else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try transaction.query(
            Queries.insertAudit,
            [
                .int4(actor.key), .text(actor.user), .text(action.rawValue), .text(bundleID?.text), .text(customer),
                .int8(receipt?.number), .jsonb(String(decoding: try encoder.encode(detail), as: UTF8.self)),
            ])
    }

    /// The same in a transaction of its own, for what is more than one.
    public func audit(
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
