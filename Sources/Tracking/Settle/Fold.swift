import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Applies the batch's evidence in the order of Apple's clocks, then the uploads' claims to ownership.
    mutating func fold() {
        for settlement in batch {
            guard let evidence = settlement.evidence else { continue }
            let app = settlement.claim.app
            let policy = app.policy(for: evidence.environment)
            if wasSettledBefore(settlement) {
                for key in settlement.subscriptionKeys { subscriptions[key]?.policy = policy }
                continue
            }
            evidence.forEachStep(known: { known(of: settlement, evidence) }) { step in
                take(step, of: settlement, in: evidence.environment, policy: policy)
            }
            for (key, purchase) in settlement.purchases {
                purchases[key]?.apply(purchase, about: settlement.claim.receiptID, policy: policy)
            }
        }
        noteOmissions()
        planUnread()
        noteUnchanged()
        takeDetailsAlong()
        claimByProof()
        for settlement in batch where settlement.evidence != nil && !wasSettledBefore(settlement) {
            resolveOwnership(of: settlement)
        }
    }

    private mutating func take(
        _ step: FoldStep, of settlement: Settlement, in environment: StoreEnvironment, policy: Policy
    ) {
        func key(_ id: OriginalTransactionID) -> SubscriptionRowKey {
            SubscriptionRowKey(appID: settlement.claim.app.id, environment: environment, id: id)
        }
        switch step {
        case .part(let slice, let elsewhere):
            subscriptions[key(slice.originalTransactionID)]?.apply(
                slice, elsewhere: elsewhere, about: settlement.claim.receiptID, policy: policy)
        case .move(let move):
            let (from, to) = (key(move.from), key(move.to))
            let payer = subscriptions[from]?.ownership.current
            subscriptions[to]?.gain(move, of: move.isNew ? payer : nil)
            let successor = owner(of: to, afterClaimsOf: settlement)
            let isElsewhere = payer.map { $0.customer != successor?.customer } ?? false
            subscriptions[from]?.lose(move, keepsAccess: isElsewhere && move.givesAccess, policy: policy)
            moves.append((from, to, move))
        case .shown(let slice):
            subscriptions[key(slice.originalTransactionID)]?.learn(slice, policy: policy)
        }
    }

    /// What is known of the subscriptions that an answer names, and of those that hold its line items or get them here.
    private func known(of settlement: Settlement, _ evidence: Evidence) -> [SubscriptionState] {
        let held =
            holders.isEmpty && rivals.isEmpty
            ? []
            : subscriptions.filter { holders.contains($0.value.rowID) || rivals.contains($0.key) }.map(\.key)
                .filter { $0.appID == settlement.claim.app.id && $0.environment == evidence.environment }
        return Set(settlement.subscriptionKeys + held).sorted().compactMap { subscriptions[$0]?.state }
    }

    /// Returns who will own a subscription once the claims of the answer's receipt are resolved.
    private func owner(of key: SubscriptionRowKey, afterClaimsOf settlement: Settlement) -> Owner? {
        guard var draft = subscriptions[key] else { return nil }
        let token = draft.state?.facts.appAccountToken
        draft.resolveOwnership(
            among: claimants(of: settlement), of: settlement.claim.receiptID, ownedBy: nil,
            named: orderCustomers.named(by: token, appID: key.appID), policy: settlement.claim.app.ownershipPolicy)
        return draft.ownership.current
    }

    /// Notes which subscriptions and purchases a verified answer omits although they are polled through its receipt: it
    /// says nothing about them. Statuses name all subscriptions of a customer.
    private mutating func noteOmissions() {
        let settled = batch.filter { $0.listsSubscriptions && !wasSettledBefore($0) }
        let read = Dictionary(settled.map { ($0.claim.receiptID, $0) }) { _, last in last }
        let held = read.filter(\.value.speaksForAll)
        for (key, draft) in subscriptions {
            guard let answer = draft.polling.poller.flatMap({ read[$0] }), !answer.subscriptionKeys.contains(key)
            else { continue }
            subscriptions[key]?.polling.omit()
            if let span = allowanceEnded(of: draft, leftOutOf: answer) {
                subscriptions[key]?.endAllowance(of: span, policy: answer.claim.app.policy(for: key.environment))
                endedByAbsence.append(key)
            }
        }
        for (key, draft) in purchases {
            guard let answer = draft.polling.poller.flatMap({ held[$0] }) else { continue }
            if !answer.purchases.contains(where: { $0.key == key }) { purchases[key]?.polling.omit() }
        }
    }

    /// Returns the span whose outage allowance ends because a later answer leaves the subscription out: the answer
    /// shows a successor in the group, or enough answers left it out.
    private func allowanceEnded(of draft: SubscriptionDraft, leftOutOf answer: Settlement) -> StoredSpan? {
        guard !draft.wasChecked, let state = draft.state, let evidence = answer.evidence,
            !evidence.transactions.isEmpty,
            let span = draft.storedSpans.first(where: { $0.isInOutageAllowance(at: recordedAt) }),
            span.from <= evidence.asOf
        else { return nil }
        let speedup = answer.claim.app.policy(for: evidence.environment).speedup
        let isOver = evidence.showsSuccessor(of: state) || draft.polling.isAbsent(at: recordedAt, speedup: speedup)
        return isOver ? span : nil
    }

    /// Has what answers that were not read in full leave out planned anew: the unread part may name it.
    private mutating func planUnread() {
        let unread = Set(
            batch.filter { $0.evidence?.isComplete == false && !wasSettledBefore($0) }.map(\.claim.receiptID))
        guard !unread.isEmpty else { return }
        func isUnread(_ polling: PollingDraft) -> Bool { polling.poller.map(unread.contains) ?? false }
        for (key, draft) in subscriptions where isUnread(draft.polling) { subscriptions[key]?.polling.confirm() }
        for (key, draft) in purchases where isUnread(draft.polling) { purchases[key]?.polling.confirm() }
    }

    /// Notes which purchases a history leaves out because nothing of them changed: they were checked at its instant.
    private mutating func noteUnchanged() {
        let settled = batch.filter { $0.evidence?.confirmsOtherPurchases == true && !wasSettledBefore($0) }
        let read = Dictionary(settled.map { ($0.claim.receiptID, $0) }) { _, last in last }
        for (key, draft) in purchases {
            guard let answer = draft.polling.poller.flatMap({ read[$0] }) else { continue }
            if !answer.purchases.contains(where: { $0.key == key }) {
                purchases[key]?.confirm(asOf: answer.asOf, policy: answer.claim.app.policy(for: key.environment))
            }
        }
    }
}

extension LedgerSettlements {
    /// Ends access where the outage allowance ran out: the only change without an answer from Apple. Stores an
    /// observation of outcome `none` for each. Returns how many ended.
    @discardableResult
    package func endAllowances(limit: Int = 100) async throws -> Int {
        let ids = try await query(Queries.findEndedAllowances, .int4(Int32(clamping: limit)))
            .map { try $0.int8("subscription_id") }
        guard !ids.isEmpty else { return 0 }
        let apps = try await ledger.operations.appsByID()
        return try await ledger.changingPollers { transaction in
            let pollers = try LockedPollers(subscriptions: ids, in: transaction)
            try pollers.foldClocks(in: transaction)
            let rows = try transaction.query(Queries.lockEndedAllowances, .int8s(ids))
            var run = try SettlementRun(locked: rows, pollers: pollers, apps: apps, in: transaction)
            let ended = run.endAllowances()
            guard !ended.isEmpty else { return 0 }
            try run.planPolling()
            let affected = try run.lockAffectedCustomers(in: transaction)
            try run.writeDrafts(in: transaction)
            try run.writePolling(in: transaction)
            try affected.store(in: transaction)
            try run.writeEndedAllowanceObservations(of: ended, in: transaction)
            return ended.count
        }
    }
}

extension SettlementRun {
    fileprivate mutating func endAllowances() -> [SubscriptionDraft] {
        let now = recordedAt
        return subscriptions.keys.sorted().compactMap { key in
            guard
                let held = subscriptions[key]?.storedSpans.first(where: { $0.allowedUntil.map { $0 <= now } ?? false }),
                let policy = policy(of: key.appID, key.environment)
            else { return nil }
            subscriptions[key]?.endAllowance(of: held, policy: policy)
            return subscriptions[key]
        }
    }

    /// Stores one observation of outcome `none` for each subscription, of the receipt that polls it: no news came.
    func writeEndedAllowanceObservations(of drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        guard !drafts.isEmpty else { return }
        let polled = drafts.compactMap { draft in draft.polling.storedPoller.map { (draft: draft, receipt: $0) } }
        let ids = try reserveIDs(observations: polled.count, in: transaction)
        let rows = zip(ids, polled).map { id, entry in
            let draft = entry.draft
            return ObservationRow(
                id: id, receiptID: entry.receipt, appID: draft.key.appID, outcome: "none",
                reason: draft.key.endedAllowanceSentence, environment: draft.key.environment, asOf: draft.state?.asOf,
                recordedMicroseconds: draft.recordedMicroseconds)
        }
        try transaction.query(Queries.insertObservations, rows: rows)
    }
}

extension SubscriptionRowKey {
    /// The reason in the observation that no news of the subscription came; a rebuild recognizes the observation by it.
    var endedAllowanceSentence: String { "The outage allowance of \(id) ran out." }
}
