import Subscriptions

/// What a settlement makes of one receipt: when to ask again, and how its refusals count.
struct ReceiptPlan: Sendable {
    let settlement: Settlement
    let next: CheckPlan
    let lane: Lane
    /// Claims since the last answer that counts.
    let attempts: Int
    let rejections: Int
    let rejectedSince: Instant?
    let emptyAnswers: Int
    /// Kept when an equal answer next time would be no news.
    var fingerprint: Fingerprint?
    /// The one-time purchases that the fingerprinted answer told of.
    var purchases = ToldPurchases()
    /// Whether Apple's refusal counts as no answer, because an incident of the app is running.
    var isForgiven = false
}

extension SettlementRun {
    /// How long an app pauses after Apple refused its shared secret, in seconds.
    static let wrongSecretPauseSeconds: Int64 = 300

    /// How often a receipt that Apple never vouched for is asked about soon although Apple calls it malformed (21002),
    /// which may pass: about half an hour. From then on it is asked about like one that nobody waits for.
    static let malformedTriesSoon = 12

    /// The plans of the batch's receipts, by the state after folding.
    mutating func plans() -> [ReceiptPlan] {
        let now = recordedAt
        for key in subscriptions.keys {
            subscriptions[key]?.planNextCheck(now: now)
        }
        return batch.map(plan(of:))
    }

    private func plan(of settlement: Settlement) -> ReceiptPlan {
        switch settlement.finding {
        case .verified(let evidence): verifiedPlan(settlement, evidence)
        case .rejected where isForgiven(settlement): indeterminatePlan(settlement)
        case .rejected(let refusal): rejectedPlan(settlement, refusal)
        case .indeterminate: indeterminatePlan(settlement)
        }
    }

    private func verifiedPlan(_ settlement: Settlement, _ evidence: Evidence) -> ReceiptPlan {
        let receipt = settlement.claim.receiptID
        let polled = subscriptions.values.filter { $0.polledBy == receipt }
        let told = settlement.purchases.compactMap { purchases[$0.key] }
        let bought = told.compactMap(\.state)
        let isEmpty = evidence.transactions.isEmpty
        let empties = isEmpty ? (receipts[receipt]?.emptyAnswers ?? 0) + 1 : 0
        let isPolledElsewhere = !isEmpty && polled.isEmpty && bought.isEmpty
        let next =
            isPolledElsewhere
            ? .retired
            : nextCheck(
                for: polled.compactMap(\.state), purchases: bought, environment: evidence.environment,
                outcome: .verified, now: recordedAt, seed: settlement.claim.seed, attempts: empties,
                policy: settlement.claim.app.policy(for: evidence.environment, speedup: speedup))
        return ReceiptPlan(
            settlement: settlement, next: next, lane: lane(of: next, polled: polled), attempts: 0, rejections: 0,
            rejectedSince: nil, emptyAnswers: empties,
            fingerprint: isEmpty || isPolledElsewhere || bought.contains { $0.asOf != evidence.asOf }
                ? nil : settlement.fingerprint,
            purchases: ToldPurchases(told))
    }

    private func rejectedPlan(_ settlement: Settlement, _ refusal: Refusal) -> ReceiptPlan {
        let before = receipts[settlement.claim.receiptID]
        let countsNot = refusal.kind == .wrongSecret
        let rejections = (before?.rejections ?? 0) + (countsNot ? 0 : 1)
        let since = rejections == 0 ? nil : before?.rejectedSince ?? recordedAt
        return ReceiptPlan(
            settlement: settlement,
            next: planWithoutAnswer(
                settlement,
                outcome: .rejected(refusal.kind, since: since ?? recordedAt, wasVerified: before?.verifiedAt != nil),
                attempts: rejections),
            lane: settlement.claim.lane,
            attempts: countsNot ? settlement.claim.attempts - 1 : settlement.claim.attempts, rejections: rejections,
            rejectedSince: since, emptyAnswers: before?.emptyAnswers ?? 0)
    }

    private func indeterminatePlan(_ settlement: Settlement) -> ReceiptPlan {
        let before = receipts[settlement.claim.receiptID]
        let attempts = settlement.claim.attempts
        return ReceiptPlan(
            settlement: settlement,
            next: planWithoutAnswer(
                settlement,
                outcome: .indeterminate(new: settlement.claim.lane.isUrgent && !isProbablyMalformed(settlement)),
                attempts: attempts),
            lane: settlement.claim.lane, attempts: attempts, rejections: before?.rejections ?? 0,
            rejectedSince: before?.rejectedSince, emptyAnswers: before?.emptyAnswers ?? 0,
            isForgiven: isForgiven(settlement))
    }

    private func isProbablyMalformed(_ settlement: Settlement) -> Bool {
        guard case .indeterminate(let trouble) = settlement.finding, trouble.status == 21002 else { return false }
        return receipts[settlement.claim.receiptID]?.verifiedAt == nil
            && settlement.claim.attempts > Self.malformedTriesSoon
    }

    /// When to ask again about a receipt that Apple did not vouch for this time.
    private func planWithoutAnswer(_ settlement: Settlement, outcome: CheckOutcome, attempts: Int) -> CheckPlan {
        let environment = settlement.claim.environment ?? .production
        let polled = subscriptions.values.filter { $0.polledBy == settlement.claim.receiptID }
        return nextCheck(
            for: polled.compactMap(\.state), environment: environment, outcome: outcome, now: recordedAt,
            seed: settlement.claim.seed, attempts: attempts,
            policy: settlement.claim.app.policy(for: environment, speedup: speedup))
    }

    private func lane(of next: CheckPlan, polled: [SubscriptionDraft]) -> Lane {
        switch next {
        case .retired: .sweep
        case .at(let instant):
            Lane(
                of: polled.compactMap { draft in
                    guard let state = draft.state, let policy = draft.policy else { return nil }
                    return Outlook(of: state, at: recordedAt, policy: policy)
                }, next: instant)
        }
    }
}

extension SubscriptionDraft {
    /// Says when this subscription alone would be asked about next.
    fileprivate mutating func planNextCheck(now: Instant) {
        guard let state, let policy else { return }
        let plan = nextCheck(
            for: [state], environment: key.environment, outcome: .verified, now: now,
            seed: UInt64(bitPattern: polledBy?.number ?? 0), policy: policy)
        switch plan {
        case .at(let instant): nextCheckAt = instant
        case .retired: nextCheckAt = nil
        }
    }
}

extension Claim {
    /// What makes this receipt's jitter its own.
    var seed: UInt64 { UInt64(bitPattern: receiptID.number) }
}
