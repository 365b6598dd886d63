import Postgres
import SQL
import Subscriptions

/// What is remembered of the last check of a receipt, seen by somebody who uploaded it.
package struct LastCheck: Sendable {
    /// What the answer was worth; nil before the first.
    let outcome: Outcome?
    /// One sentence, when it was not verified, or something was odd about the answer.
    let reason: String?
    /// Whether it decided about the customer's last upload.
    let servesUpload: Bool
    /// The lease of the settlement that wrote it.
    let settledToken: Int64
    /// When Apple will be asked again; nil when the receipt needs no more questions.
    let nextCheckAt: Instant?

    /// Whether it is what a check for this upload would come to: it served the upload, or Apple did not vouch for the receipt
    /// while the uploader waited, since `before`.
    fileprivate func answers(since before: LastCheck?) -> Bool {
        switch outcome {
        case .verified: servesUpload
        case .rejected, .indeterminate: before.map { $0.settledToken != settledToken } ?? false
        case nil: false
        }
    }
}

extension SubscriptionLedger {
    /// What the last check of a receipt came to; nil when nobody stored the receipt.
    package func lastCheck(of receipt: ReceiptID, servedTo customer: String?) async throws -> LastCheck? {
        try await database.transaction { try LastCheck(of: receipt, servedTo: customer, in: $0) }
    }

    /// What another process's check of a receipt came to, if it is as good as one that this customer would make now; nil when
    /// Apple has to be asked. `before` is what was known when the other process was seen asking.
    ///
    /// The customer holds what is theirs, whether or not that check had to assign it; it tells no events: they are told where
    /// they were made.
    package func settled(
        _ receipt: ReceiptID, servedTo customer: String?, since before: LastCheck?
    ) async throws -> Settled? {
        guard let customer else { return nil }
        return try await database.transaction { transaction in
            guard let last = try LastCheck(of: receipt, servedTo: customer, in: transaction),
                last.answers(since: before), let outcome = last.outcome
            else { return nil }
            let contents = outcome == .verified ? try contents(of: receipt, for: customer, in: transaction) : []
            return Settled(
                receiptID: receipt, outcome: outcome, reason: last.reason, refusal: nil, subscriptions: contents,
                purchaseEvents: [], nextCheckAt: last.nextCheckAt)
        }
    }

    private func contents(
        of receipt: ReceiptID, for customer: String, in transaction: Transaction
    ) throws -> [Settled.SubscriptionOutcome] {
        let rows = try transaction.query(Queries.readContents, [.int8(receipt.number)])
        let drafts = try LoadedSubscriptions(
            rows, recordedMicroseconds: 0, lockingOwners: false, in: transaction
        ).drafts.values
        let byID = Dictionary(drafts.map { ($0.rowID, $0) }) { first, _ in first }
        return try rows.compactMap { row -> Settled.SubscriptionOutcome? in
            guard let draft = byID[try row.int8("subscription_id")], let state = draft.stored else { return nil }
            let policy = Policy.standard(for: draft.key.environment).with(leeway: state.leeway)
            let (name, owner) = (AppCustomerID(customer), try row.textIfPresent("owner").map { AppCustomerID($0) })
            let answer: OwnershipAnswer? = owner.map { $0 == name ? .held : .refused("Another customer owns it.") }
            return Settled.SubscriptionOutcome(
                id: draft.key.id, environment: draft.key.environment,
                verdict: verdict(of: state.facts, at: state.asOf, policy: policy), events: [],
                ownership: answer.map { [name: $0] } ?? [:])
        }
    }
}

extension LastCheck {
    fileprivate init?(of receipt: ReceiptID, servedTo customer: String?, in transaction: Transaction) throws {
        let rows = try transaction.query(Queries.readLastCheck, [.int8(receipt.number), .text(customer)])
        guard let row = rows.first else { return nil }
        outcome = try row.textIfPresent("outcome").flatMap { Outcome(rawValue: $0) }
        reason = try row.textIfPresent("reason")
        servesUpload = try row.bool("served")
        settledToken = try row.int8("settled_token")
        nextCheckAt = try row.instantIfPresent("next_check_at")
    }
}
