/// Returns the verdict on a subscription at a single instant, by the one decision table, `DecisionTable`.
///
/// An instant before the first period yields `expired` with reason `unknown`, without access.
package func verdict(of facts: SubscriptionFacts, at instant: Instant, policy: Policy) -> Verdict {
    DecisionTable(facts, policy: policy).verdict(at: instant, explained: true)
}

/// The decision table over one subscription, prepared for many instants. docs/lifecycle.md shows it as a table.
///
/// At an instant before the newest answer, only periods that had begun exist. From the newest answer on all periods
/// exist, including a renewal charged ahead of time.
struct DecisionTable {
    /// The values the table reads repeatedly, without reference counting.
    struct Stretch {
        let purchasedAt: Instant
        let expiresAt: Instant
        /// The instant from which the period no longer counts; nil for a live one.
        let voidAt: Instant?
        let isUpgraded: Bool
        /// The instant another period took its place: see `Replacement`.
        let replacedAt: Instant?
    }

    let facts: SubscriptionFacts
    let policy: Policy
    /// In order of purchase.
    let stretches: [Stretch]
    private let last: Int?
    private let currentRenewal: RenewalFacts?

    init(_ facts: SubscriptionFacts, policy: Policy) {
        self.facts = facts
        self.policy = policy
        stretches = zip(facts.periods, Replacement.instants(in: facts.periods)).map { Stretch($0, replacedAt: $1) }
        last = Period.indexOfLast(in: facts.periods)
        currentRenewal = facts.currentRenewalFacts
    }

    /// Returns the renewal information about the end of a period.
    func renewal(of index: Int) -> RenewalFacts? {
        index == last ? currentRenewal : facts.periods[index].renewal?.after(facts.periods[index].expiresAt)
    }

    /// Returns the end of grace after a period: Apple's date; where its status alone says grace, the longest that it
    /// grants. Once a newer row lacks that status, grace ended with the last row that had it.
    func graceEnd(of index: Int, _ renewal: RenewalFacts?) -> Instant? {
        guard let renewal, renewal.isGraceAssumed else {
            return [renewal?.graceEndsAt, renewal?.graceByStatusEndedAt].compactMap(\.self).max()
        }
        return facts.periods[index].expiresAt + policy.longestGrace(after: facts.periods[index])
    }

    /// Every instant at which the verdict may change, starting at the first purchase or the newest answer, if that is
    /// earlier.
    var boundaries: [Instant] {
        let start = min(stretches.first?.purchasedAt ?? facts.asOf, facts.asOf)
        var instants: Set<Instant> = [start, facts.asOf]
        for (index, stretch) in stretches.enumerated() {
            instants.formUnion([stretch.purchasedAt, stretch.expiresAt, stretch.expiresAt + policy.leeway])
            if let voidAt = stretch.voidAt { instants.insert(voidAt) }
            if let replacedAt = stretch.replacedAt { instants.insert(replacedAt) }
            if let grace = graceEnd(of: index, renewal(of: index)) { instants.insert(grace) }
        }
        return instants.filter { $0 >= start }.sorted()
    }

    /// Returns the verdict at an instant, with its grounds only if `explained`.
    func verdict(at instant: Instant, explained: Bool = false) -> Verdict {
        verdict(of: view(at: instant), at: instant, explained: explained)
    }

    /// Returns the verdict for the view at an instant.
    func verdict(of view: View, at instant: Instant, explained: Bool) -> Verdict {
        guard let decision = decide(view, at: instant) else {
            let product = facts.periods.first?.productID ?? facts.renewal?.value.productID ?? ProductID("")
            return Verdict(
                state: .expired, reason: .unknown, productID: product,
                expiresAt: stretches.first?.expiresAt ?? facts.asOf, entitledUntil: nil, flags: [],
                because: explained ? [Ground(rule: Rule.notStarted.rawValue, path: "", value: "")] : [])
        }
        return Verdict(
            state: decision.rule.state, reason: decision.rule.reason,
            productID: facts.periods[decision.subject].productID,
            expiresAt: facts.periods[decision.head].expiresAt, entitledUntil: decision.entitledUntil,
            flags: flags(decision, at: instant), because: explained ? grounds(of: decision) : [])
    }
}

extension Policy {
    /// Returns the longest grace that Apple grants after a period (Apple: "Enable Billing Grace Period"). The length of
    /// an offer says nothing about its product.
    fileprivate func longestGrace(after period: Period) -> Delay {
        let isOffer =
            period.isTrial || period.isIntro || period.details.promotionalOfferID != nil
            || period.details.offerCodeRefName != nil
        let isWeekly = !isOffer && period.expiresAt - period.purchasedAt <= Delay.days(7).divided(by: speedup)
        return Delay.days(isWeekly ? 6 : 28).divided(by: speedup)
    }
}

extension DecisionTable.Stretch {
    init(_ period: Period, replacedAt: Instant?) {
        purchasedAt = period.purchasedAt
        expiresAt = period.expiresAt
        isUpgraded = period.isUpgraded
        self.replacedAt = replacedAt
        // The period is void as soon as Apple reports the cancellation, even if its date is still in the future. The date
        // of a replaced one may be that of a later refund.
        let cancelledAt = period.cancelledAt.map { min($0, period.revocation.asOf) }
        voidAt =
            period.isUpgraded
            ? [cancelledAt, replacedAt].compactMap(\.self).min() ?? Instant(milliseconds: .min) : cancelledAt
    }

    /// Returns whether the period no longer counts.
    func isVoid(at instant: Instant) -> Bool { voidAt.map { $0 <= instant } ?? false }
}
