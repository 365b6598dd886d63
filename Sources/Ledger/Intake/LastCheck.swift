import Postgres
import SQL
import Subscriptions

/// The last check of a receipt, as seen by an upload of it.
package struct LastCheck: Sendable {
    /// The outcome of the answer; nil before the first one.
    let outcome: Outcome?
    /// The reason why it was not verified, or an oddity of the answer, in one sentence.
    let reason: String?
    /// Whether the check covered the last upload, so that its claims to ownership and to pay an order are resolved.
    let resolvedClaims: Bool
    /// Why the contents are believed to be the sender's.
    let vouching: Vouching
    /// The lease token of the settlement that wrote it.
    let settledToken: Int64
    /// The next check; nil when no further check is planned.
    let nextCheckAt: Instant?

    /// Returns whether a check for this upload would have the same result: this check covered the upload, or Apple did
    /// not verify the receipt in a check settled since `before`, while the uploader waited.
    fileprivate func answers(since before: LastCheck?) -> Bool {
        switch outcome {
        case .verified: resolvedClaims
        case .rejected, .indeterminate: before.map { $0.settledToken != settledToken } ?? false
        case nil: false
        }
    }
}

extension LedgerIntake {
    /// Returns the last check of a receipt; nil when the receipt is not stored.
    package func lastCheck(of receipt: ReceiptID, for claim: UploadClaim?) async throws -> LastCheck? {
        try await database.transaction { try LastCheck(of: receipt, for: claim, in: $0) }
    }

    /// Returns the seconds until a receipt may be asked about: while a process keeps it that shows no sign of life, and
    /// until the next trial of a secret that Apple refuses. With `backingOff` its own back-off counts too, an hour of it
    /// at most. Nil where nothing is in the way.
    package func secondsHeld(_ receipt: ReceiptID, backingOff: Bool = false) async throws -> Int? {
        try await query(Queries.readLease, [.int8(receipt.number), .bool(backingOff)]).first.map {
            Int(try $0.int8("seconds"))
        }
    }

    /// Returns the result of another process's check of a receipt, if it is as good as a check for this upload now;
    /// nil when Apple has to be asked.
    ///
    /// `before` is the last check when the other process was found asking. The customer's own subscriptions count as
    /// already owned, whether or not that check had to assign them. The result contains no events; the other check
    /// reports them.
    package func settled(
        _ receipt: ReceiptID, for claim: UploadClaim?, since before: LastCheck?
    ) async throws -> Settled? {
        guard let claim else { return nil }
        return try await database.transaction { transaction in
            guard let last = try LastCheck(of: receipt, for: claim, in: transaction),
                last.answers(since: before), let outcome = last.outcome
            else { return nil }
            let contents = outcome == .verified ? try contents(of: receipt, for: claim.customer, in: transaction) : []
            return Settled(
                receiptID: receipt, outcome: outcome, reason: last.reason, refusal: nil, repetition: .later,
                vouching: last.vouching,
                orderIDs: Set([claim.orderID].compactMap(\.self)), subscriptions: contents,
                purchaseEvents: [], nextCheckAt: last.nextCheckAt)
        }
    }

    private func contents(
        of receipt: ReceiptID, for customer: String?, in transaction: Transaction
    ) throws -> [Settled.SubscriptionOutcome] {
        let rows = try transaction.query(Queries.readContents, [.int8(receipt.number)])
        let drafts = try LoadedSubscriptions(
            rows, recordedMicroseconds: 0, lockingOwners: false, in: transaction
        ).drafts.values
        let byID = Dictionary(drafts.map { ($0.rowID, $0) }) { first, _ in first }
        return try rows.compactMap { row -> Settled.SubscriptionOutcome? in
            guard let draft = byID[try row.int8("subscription_id")], let state = draft.stored else { return nil }
            let policy = Policy.standard(for: draft.key.environment).with(leeway: state.leeway)
            let (name, owner) = (customer.map { AppCustomerID($0) }, try row.textIfPresent("owner"))
            let answer: OwnershipAnswer? = owner.map {
                AppCustomerID($0) == name ? .held : .refused("Another customer owns it.")
            }
            let answers = name.flatMap { name in answer.map { [name: $0] } }
            return Settled.SubscriptionOutcome(
                id: draft.key.id, environment: draft.key.environment,
                verdict: verdict(of: state.facts, at: state.asOf, policy: policy), events: [],
                ownership: answers ?? [:])
        }
    }
}

extension LastCheck {
    fileprivate init?(of receipt: ReceiptID, for claim: UploadClaim?, in transaction: Transaction) throws {
        let rows = try transaction.query(
            Queries.readLastCheck, [.int8(receipt.number), .text(claim?.customer), .text(claim?.orderID)])
        guard let row = rows.first else { return nil }
        outcome = try row.textIfPresent("outcome").flatMap { Outcome(rawValue: $0) }
        reason = try row.textIfPresent("reason")
        resolvedClaims = try row.bool("claims_are_resolved")
        vouching = Vouching(try row.word("form"), isVouched: try row.bool("vouched"))
        settledToken = try row.int8("settled_token")
        nextCheckAt = try row.instantIfPresent("next_check_at")
    }
}
