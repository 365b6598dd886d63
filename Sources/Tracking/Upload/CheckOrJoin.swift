import Postgres
import SQL
import Subscriptions

extension Tracker {
    /// Asks Apple about one stored receipt now, within the app's call budget, and settles the answer, or returns the
    /// result of a check that is under way in this process. Throws `LedgerError` `notFound`, or `busy` while another
    /// process asks, the app may not ask, or Apple takes longer than until `end`; the workers then go on.
    package func check(_ receipt: ReceiptID, until end: ContinuousClock.Instant? = nil) async throws -> Settled {
        try await checkOrJoin(receipt, of: nil, for: nil, until: end)
    }

    /// Checks a receipt for an upload of it, or joins another check of it. The result of one that resolved the upload's
    /// claim counts too, in whichever process it ran. Throws as ``check(_:until:)`` does.
    func checkOrJoin(
        _ receipt: ReceiptID, of app: App?, for sender: UploadSender?, until end: ContinuousClock.Instant?
    ) async throws -> Settled {
        // A check without a limit of its own ends with its lease.
        try await singleFlight.outcome(
            of: receipt, until: end ?? .now + .seconds(options.leaseSeconds),
            isEnough: { settled in sender.map(settled.answers) ?? true },
            check: { try await claimAndCheck(receipt, of: app, for: sender, until: end) })
    }

    /// The interval between two looks at another process that asks about the receipt.
    private static let busyMilliseconds = 100

    /// Checks a receipt as the only one in this process, or waits until `end` for the result of another process.
    private func claimAndCheck(
        _ receipt: ReceiptID, of app: App?, for sender: UploadSender?, until end: ContinuousClock.Instant?
    ) async throws -> Settled {
        let worker = try await identity.worker(of: self)
        var before: LastCheck?
        while true {
            if before != nil, let settled = try await ledger.intake.settled(receipt, for: sender, since: before) {
                return settled
            }
            let claim: Claim
            do {
                claim = try await ledger.claims.claim(receipt, of: app, for: worker, leaseSeconds: options.leaseSeconds)
            } catch let error as LedgerError where error.kind == .busy {
                guard let end, ContinuousClock.now < end else { throw error }
                if before == nil { before = try await ledger.intake.lastCheck(of: receipt, for: sender) }
                try await Task.sleep(for: .milliseconds(Self.busyMilliseconds))
                continue
            }
            // This process has the lease, so no other one settles. An earlier settlement may have resolved the claim.
            guard let settled = try await ledger.intake.settled(receipt, for: sender, since: before) else {
                // The customer waits for the result, so the answer is read even where it equals the last one.
                if let settled = try await takeBudgetAndCheck(claim.inFull, until: end) { return settled }
                // Another process may ask by now.
                guard let end, ContinuousClock.now < end else { throw Self.leaseLost }
                continue
            }
            try await ledger.claims.release([claim])
            return settled
        }
    }

    private static let leaseLost = LedgerError(
        .busy, "The lease of the receipt ran out before Apple's answer was settled; a worker will ask again.")

    /// Checks a claimed receipt; nil when the lease ran out and the answer has no evidence, so that it comes too late.
    private func takeBudgetAndCheck(_ claim: Claim, until end: ContinuousClock.Instant?) async throws -> Settled? {
        if let pause = claim.secretPause, !ServerQuestion(about: claim).asksServer {
            try await ledger.claims.release([claim])
            throw LedgerError(.busy, "Apple is not asked for \(claim.app.bundleID) now: \(pause.reason).")
        }
        guard try await ledger.claims.takeBudget([(app: claim.app, calls: 1)])[claim.app.id] == 1 else {
            try await ledger.claims.release([claim])
            let why = claim.app.pause.map { "its checks are paused: \($0.reason)" } ?? "its budget of calls is used up."
            throw LedgerError(.busy, "Apple is not asked for \(claim.app.bundleID) now: \(why)")
        }
        let batch = try await check(claim, until: end)
        await attempt("place events in the feed") { try await ledger.feed.sequenceAll() }
        await writeTally()
        return batch.settled.first
    }
}

extension Settled {
    /// Returns whether the settlement decided the upload's claims. It did not when the upload came too late for it.
    fileprivate func answers(_ sender: UploadSender) -> Bool {
        guard sender.orderID.map(orderIDs.contains) ?? true else { return false }
        guard let customer = sender.customer, !subscriptions.isEmpty else { return true }
        return subscriptions.contains { $0.ownership[AppCustomerID(customer)] != nil }
    }
}

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
    /// Nil when no further check is planned.
    let nextCheckAt: Instant?

    fileprivate init?(of receipt: ReceiptID, for sender: UploadSender?, in transaction: Transaction) throws {
        let rows = try transaction.query(
            Queries.readLastCheck, .int8(receipt.number), .text(sender?.customer), .text(sender?.orderID))
        guard let row = rows.first else { return nil }
        outcome = try row.textIfPresent("outcome").flatMap { Outcome(rawValue: $0) }
        reason = try row.textIfPresent("reason")
        resolvedClaims = try row.bool("claims_are_resolved")
        vouching = Vouching(try row.word("form"), isVouched: try row.bool("vouched"))
        settledToken = try row.int8("settled_token")
        nextCheckAt = try row.instantIfPresent("next_check_at")
    }

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
    package func lastCheck(of receipt: ReceiptID, for sender: UploadSender?) async throws -> LastCheck? {
        try await database.transaction { try LastCheck(of: receipt, for: sender, in: $0) }
    }

    /// Returns the result of another process's check of a receipt, if it is as good as a check for this upload now; nil
    /// when Apple has to be asked. `before` is the last check when the other process was found asking. The customer's own
    /// subscriptions count as already owned, whether or not that check had to assign them. The other check reports the
    /// events.
    package func settled(
        _ receipt: ReceiptID, for sender: UploadSender?, since before: LastCheck?
    ) async throws -> Settled? {
        guard let sender else { return nil }
        return try await database.transaction { transaction in
            guard let last = try LastCheck(of: receipt, for: sender, in: transaction),
                last.answers(since: before), let outcome = last.outcome
            else { return nil }
            let contents = outcome == .verified ? try contents(of: receipt, for: sender.customer, in: transaction) : []
            return Settled(
                receiptID: receipt, outcome: outcome, reason: last.reason, refusal: nil, retry: .later,
                vouching: last.vouching, orderIDs: Set([sender.orderID].compactMap(\.self)), subscriptions: contents,
                purchaseEvents: [], nextCheckAt: last.nextCheckAt)
        }
    }

    private func contents(
        of receipt: ReceiptID, for customer: String?, in transaction: Transaction
    ) throws -> [Settled.SubscriptionOutcome] {
        let rows = try transaction.query(Queries.readContents, .int8(receipt.number))
        let drafts = try LoadedSubscriptions(
            rows, of: [:], recordedMicroseconds: 0, lockingOwners: false, in: transaction
        ).drafts.values
        let byID = Dictionary(drafts.map { ($0.rowID, $0) }) { first, _ in first }
        return try rows.compactMap { row -> Settled.SubscriptionOutcome? in
            guard let draft = byID[try row.int8("subscription_id")], let state = draft.stored else { return nil }
            let policy = Policy.standard(for: draft.key.environment).with(leeway: state.leeway)
            var ownership: [AppCustomerID: OwnershipAnswer] = [:]
            if let name = customer.map({ AppCustomerID($0) }), let owner = try row.textIfPresent("owner") {
                ownership[name] = AppCustomerID(owner) == name ? .held : .refused("Another customer owns it.")
            }
            return Settled.SubscriptionOutcome(
                id: draft.key.id, environment: draft.key.environment,
                verdict: verdict(of: state.facts, at: state.asOf, policy: policy), events: [], ownership: ownership)
        }
    }
}
