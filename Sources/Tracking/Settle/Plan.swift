package import Subscriptions

/// The plan of a settlement for one receipt: when to ask again, and how its refusals count.
struct ReceiptPlan: Sendable {
    let settlement: Settlement
    let next: CheckPlan
    let lane: Lane
    /// Claims since the last answer that counts.
    let attempts: Int
    let rejections: Int
    let rejectedSince: Instant?
    let emptyAnswers: Int
    /// What recognizes an equal answer next time; nil when that would be news.
    var recognition: Recognition?
    /// Whether Apple's refusal counts as no answer, because an incident of the app is running.
    var isForgiven = false
    /// How many checks may still bring no news of what a notification states.
    var followUps = 0
    /// Whether to forget the newest receipt, because the answer about it left out something that is polled through it.
    var forgetsLatest = false

    /// Whether Apple refused the receipt for the last time.
    var endsPolling: Bool { settlement.finding.refusal != nil && next == .retired }
}

/// What recognizes an answer that equals this one, and what follows from it.
struct Recognition: Sendable {
    let fingerprint: Fingerprint
    /// Of what it means, in whatever bytes.
    let meaning: Fingerprint
    /// Apple's clock of the first such answer.
    let asOf: Instant
    let polled: PolledContents
}

extension SettlementRun {
    /// How long the calls of the Server API pause after Apple refused the app's key, in seconds.
    static let refusedKeyPauseSeconds: Int64 = 300

    /// How often to retry soon a receipt that Apple never vouched for and calls malformed (21002): for about half an
    /// hour, because that may pass. Then it is scheduled like one that no customer waits for.
    static let malformedTriesSoon = 12

    /// Plans the next checks of the batch's receipts by the state after folding, and releases what refused ones polled.
    mutating func makePlans() throws(PollersChanged) -> [ReceiptPlan] {
        try planPolling()
        let plans = batch.map(plan(of:))
        for plan in plans where plan.endsPolling { releasePolled(by: plan.settlement.claim.receiptID) }
        return plans
    }

    /// Releases everything polled through a receipt that Apple refused for the last time.
    private mutating func releasePolled(by receipt: ReceiptID) {
        for (key, draft) in subscriptions where draft.polling.poller == receipt {
            subscriptions[key]?.polling.release()
        }
        for (key, draft) in purchases where draft.polling.poller == receipt { purchases[key]?.polling.release() }
    }

    mutating func releaseUnable() {
        for receipt in unable { releasePolled(by: receipt) }
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
        let polled = subscriptions.values.filter { $0.polling.poller == receipt }
        let bought = purchases.values.filter { $0.polling.poller == receipt }
        let isEmpty = evidence.transactions.isEmpty && settlement.speaksForAll
        let empties = isEmpty ? (receipts[receipt]?.emptyAnswers ?? 0) + 1 : 0
        let isPolledElsewhere = !isEmpty && polled.isEmpty && bought.isEmpty
        let omits = polled.contains(where: \.polling.isOmitted)
        let policy = settlement.claim.app.policy(for: evidence.environment)
        var next =
            isPolledElsewhere
            ? .retired
            : nextCheck(
                for: polled.compactMap(\.state), purchases: bought.compactMap(\.state),
                environment: evidence.environment, outcome: .verified, now: recordedAt, seed: settlement.claim.seed,
                attempts: empties, policy: policy)
        if settlement.server?.goesOn == true
            || settlement.isOnlyVouching && polled.contains(where: { $0.stored == nil })
        {
            next = next.by(recordedAt + Settlement.nextPageDelay)
        }
        // The original receipt may still hold what the newest one leaves out.
        if omits, settlement.claim.asksLatest { next = next.by(recordedAt + secondAnswerDelay(policy: policy)) }
        if doubtsRefund(in: settlement) || polled.contains(where: { isDoubted($0.key) }) {
            next = next.by(recordedAt + secondAnswerDelay(policy: policy))
        }
        let followUps = followUps(after: settlement, policy: policy)
        if let soon = followUps.by { next = next.by(soon) }
        let usual = lane(of: next, polled: polled)
        return ReceiptPlan(
            settlement: settlement, next: next,
            // Many notifications at once take no turn from checks at an end.
            lane: followUps.left > 0 && !usual.isUrgent ? .retry : usual, attempts: 0, rejections: 0,
            rejectedSince: nil, emptyAnswers: empties,
            recognition: isEmpty || isPolledElsewhere || omits || followUps.left > 0
                || awaitsOwner(settlement, polled, bought)
                ? nil : recognition(of: settlement, polled, bought, asOf: evidence.asOf, policy: policy),
            followUps: followUps.left, forgetsLatest: omits && settlement.claim.asksLatest)
    }

    /// Whether the bare id of a transaction shows what has no owner yet: another receipt may show whose it is.
    private func awaitsOwner(
        _ settlement: Settlement, _ polled: [SubscriptionDraft], _ bought: [PurchaseDraft]
    ) -> Bool {
        settlement.claim.form == .transactionID
            && (polled.map(\.ownership) + bought.map(\.ownership)).contains { $0.current == nil }
    }

    /// Returns what recognizes an equal answer; nil unless this was the last word on what the receipt polls and holds.
    private func recognition(
        of settlement: Settlement, _ polled: [SubscriptionDraft], _ bought: [PurchaseDraft], asOf: Instant,
        policy: Policy
    ) -> Recognition? {
        let held = settlement.purchases.compactMap { purchases[$0.key] }
        guard let fingerprint = settlement.fingerprint, let evidence = settlement.evidence,
            (held + bought).allSatisfy({ $0.state?.asOf == asOf && $0.state?.refundRetractedAt == nil }),
            polled.allSatisfy({
                $0.answeredBy == settlement.claim.receiptID && $0.state?.asOf == asOf
                    && $0.state?.retractions.isEmpty == true
            })
        else { return nil }
        let contents = PolledContents(
            subscriptions: polled.compactMap(\.state), purchases: bought.compactMap(\.state), asOf: asOf, policy: policy
        )
        guard contents.subscriptions.count == polled.count else { return nil }
        return Recognition(
            fingerprint: fingerprint, meaning: Fingerprint(of: evidence, app: settlement.claim.app), asOf: asOf,
            polled: contents)
    }

    private func rejectedPlan(_ settlement: Settlement, _ refusal: Refusal) -> ReceiptPlan {
        let before = receipts[settlement.claim.receiptID]
        let countsNot = refusal.kind == .wrongSecret
        let isKnown = before?.verifiedAt != nil
        let policy = settlement.claim.app.policy(for: settlement.claim.environment ?? .production)
        let followUp =
            countsNot || !isKnown
            ? nil
            : followUp(
                ofRefused: settlement.claim.receiptID, since: before?.rejectedSince ?? recordedAt, policy: policy)
        var rejections = (before?.rejections ?? 0) + (countsNot ? 0 : 1)
        if followUp != nil, let first = before?.rejectedSince {
            // Questions of notifications come more often than a refusal counts.
            let days = (recordedAt - first).milliseconds / Delay.days(1).divided(by: policy.speedup).milliseconds
            rejections = min(rejections, max(before?.rejections ?? 0, Int(days) + 1))
        }
        let since = rejections == 0 ? nil : before?.rejectedSince ?? recordedAt
        var next = planWithoutAnswer(
            settlement,
            outcome: .rejected(
                refusal.kind, since: (countsNot ? before?.receivedAt : since) ?? recordedAt, wasVerified: isKnown),
            attempts: rejections)
        if let followUp, next != .retired { next = next.by(followUp) }
        return ReceiptPlan(
            settlement: settlement, next: next,
            // What is probably a receipt of another app takes no turn from customers who wait.
            lane: countsNot && !isKnown && settlement.claim.lane.isUrgent ? .sweep : settlement.claim.lane,
            attempts: countsNot ? settlement.claim.attempts - 1 : settlement.claim.attempts, rejections: rejections,
            rejectedSince: since, emptyAnswers: before?.emptyAnswers ?? 0,
            followUps: pollers?.schedules[settlement.claim.receiptID]?.followUps ?? 0)
    }

    private func indeterminatePlan(_ settlement: Settlement) -> ReceiptPlan {
        let before = receipts[settlement.claim.receiptID]
        let attempts = settlement.claim.attempts - (settlement.finding.isOfTheApp ? 1 : 0)
        let next = planWithoutAnswer(
            settlement,
            outcome: settlement.finding.isOfTheApp ? .refusedApp : .indeterminate(new: isAwaited(settlement)),
            attempts: attempts)
        let policy = settlement.claim.app.policy(for: settlement.claim.environment ?? .production)
        let isSetAside = setAside.contains(settlement.claim.receiptID)
        return ReceiptPlan(
            settlement: settlement,
            next: isSetAside ? .at(recordedAt + setAsideDelay(afterCalls: attempts, policy: policy)) : next,
            lane: isProbablyMalformed(settlement) && settlement.claim.lane.isUrgent ? .sweep : settlement.claim.lane,
            attempts: attempts, rejections: before?.rejections ?? 0, rejectedSince: before?.rejectedSince,
            emptyAnswers: before?.emptyAnswers ?? 0, isForgiven: isForgiven(settlement),
            followUps: pollers?.schedules[settlement.claim.receiptID]?.followUps ?? 0)
    }

    /// Whether a usable answer may come at any moment and a customer's access waits for it.
    private func isAwaited(_ settlement: Settlement) -> Bool {
        settlement.claim.lane.isUrgent && !isProbablyMalformed(settlement) && !isForgiven(settlement)
    }

    private func isProbablyMalformed(_ settlement: Settlement) -> Bool {
        settlement.finding.failure?.status == 21002 && receipts[settlement.claim.receiptID]?.verifiedAt == nil
            && settlement.claim.attempts > Self.malformedTriesSoon
    }

    /// Returns when to ask again about a receipt that Apple did not vouch for this time.
    private func planWithoutAnswer(_ settlement: Settlement, outcome: CheckOutcome, attempts: Int) -> CheckPlan {
        let environment = settlement.claim.environment ?? .production
        let polled = subscriptions.values.filter { $0.polling.poller == settlement.claim.receiptID }
        return nextCheck(
            for: polled.compactMap(\.state), environment: environment, outcome: outcome, now: recordedAt,
            seed: settlement.claim.seed, attempts: attempts, policy: settlement.claim.app.policy(for: environment))
    }

    func lane(of next: CheckPlan, polled: [SubscriptionDraft]) -> Lane {
        switch next {
        case .retired: .sweep
        case .at(let instant):
            Lane(
                of: polled.compactMap { draft in
                    guard let state = draft.state,
                        let policy = draft.policy ?? policy(of: draft.key.appID, draft.key.environment)
                    else { return nil }
                    return ScheduleInput(of: state, at: recordedAt, policy: policy)
                }, next: instant)
        }
    }

    /// Returns whether an answer takes something of a subscription back that waits for a second one, or states what a
    /// newer one took back. Its poller is asked for the second answer. Silence about it is no reason to ask.
    private func doubts(_ state: SubscriptionState?, of key: SubscriptionRowKey, in settlement: Settlement) -> Bool {
        guard let state, !state.retractions.isEmpty, settlement.subscriptionKeys.contains(key),
            let evidence = settlement.evidence
        else { return false }
        return state.doubts(in: evidence.slice(of: key.id))
    }

    /// Whether an answer of the batch does so. Where nothing waits, as nearly always, the batch is not gone through.
    func isDoubted(_ key: SubscriptionRowKey) -> Bool {
        guard let state = subscriptions[key]?.state, !state.retractions.isEmpty else { return false }
        return batch.contains { doubts(state, of: key, in: $0) }
    }

    /// Whether an answer does so of the refund of a purchase; nil: of any. Its receipt is asked for the second answer.
    func doubtsRefund(of key: PurchaseRowKey? = nil, in settlement: Settlement) -> Bool {
        settlement.purchases.contains { bought, said in
            (key ?? bought) == bought && purchases[bought]?.state?.doubts(in: said) == true
        }
    }

    /// Whether an answer is one of those that take something back together, or states what they take back.
    func countsByItself(_ settlement: Settlement) -> Bool {
        settlement.subscriptionKeys.contains { key in
            [subscriptions[key]?.stored, subscriptions[key]?.state].contains { doubts($0, of: key, in: settlement) }
        }
            || settlement.purchases.contains { key, said in
                [purchases[key]?.stored, purchases[key]?.state].contains { $0?.doubts(in: said) == true }
            }
    }

    /// Whether an answer took back what waits for a second one: then the history is read again from the same place.
    func awaitsSecondAnswer(_ settlement: Settlement) -> Bool {
        settlement.subscriptionKeys.contains { subscriptions[$0]?.state?.retractions.isEmpty == false }
            || settlement.purchases.contains { purchases[$0.key]?.state?.refundRetractedAt != nil }
    }
}

extension CheckPlan {
    func by(_ moment: Instant) -> CheckPlan {
        switch self {
        case .at(let instant): .at(min(instant, moment))
        case .retired: .at(moment)
        }
    }
}

extension Lane {
    /// Chooses the lane of a receipt's next check.
    package init(of inputs: [ScheduleInput], next: Instant) {
        if inputs.contains(where: { $0.isNear(next) }) {
            self = .expiring
        } else if inputs.contains(where: { $0.state == .billingRetry }) {
            self = .retry
        } else {
            self = .sweep
        }
    }

    /// Whether a customer may be waiting for the answer.
    var isUrgent: Bool {
        switch self {
        case .new, .expiring: true
        case .retry, .imported, .sweep, .quarantine: false
        }
    }
}

extension ScheduleInput {
    /// How long before an end a check is near it: an app's widest spread, plus the lead. SQL: `ledger.pulled_lane`.
    private static let nearHours: Int64 = 13

    fileprivate func isNear(_ next: Instant) -> Bool {
        // Apple may charge a refunded subscription again when its period ends; access then returns.
        if state == .revoked, !isRenewalOff {
            return next + .hours(Self.nearHours) >= expiresAt && next <= expiresAt + .hours(Self.nearHours)
        }
        guard accessEndsAt != nil || isInOutageAllowance else { return false }
        // What is charged already goes on beyond the end of the present period.
        let end = state == .active ? expiresAt : until
        return end.map { next + .hours(Self.nearHours) >= $0 } ?? false
    }
}
