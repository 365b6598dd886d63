/// What a subscription is at an instant: the one decision table. The same as `DecisionTable`, for a single instant.
///
/// An instant before the first period is `expired` for an `unknown` reason, without access.
package func verdict(of facts: SubscriptionFacts, at instant: Instant, policy: Policy) -> Verdict {
    DecisionTable(facts, policy: policy).verdict(at: instant, explained: true)
}

/// The decision table over one subscription, prepared for many instants. docs/lifecycle.md shows it as a table.
///
/// At an instant before the newest answer only periods that had begun exist; from the newest answer on all of them do,
/// a renewal charged ahead of time included.
struct DecisionTable {
    /// What the table looks at again and again, without reference counts.
    struct Stretch {
        let purchasedAt: Instant
        let expiresAt: Instant
        /// From when on it counts no more; nil for a live one.
        let voidAt: Instant?
        let isUpgraded: Bool
        /// When another took its place: see `Replacement`.
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

    /// The renewal information that speaks of the end of a period.
    func renewal(of index: Int) -> RenewalFacts? {
        index == last ? currentRenewal : facts.periods[index].renewal
    }

    /// Every instant at which the verdict may change, from the earlier of first purchase and newest answer on.
    var boundaries: [Instant] {
        let start = min(stretches.first?.purchasedAt ?? facts.asOf, facts.asOf)
        var instants: Set<Instant> = [start, facts.asOf]
        for (index, stretch) in stretches.enumerated() {
            instants.formUnion([stretch.purchasedAt, stretch.expiresAt, stretch.expiresAt + policy.leeway])
            if let voidAt = stretch.voidAt { instants.insert(voidAt) }
            if let replacedAt = stretch.replacedAt { instants.insert(replacedAt) }
            if let grace = renewal(of: index)?.graceEndsAt { instants.insert(grace) }
        }
        return instants.filter { $0 >= start }.sorted()
    }

    /// The verdict at an instant; its grounds only if they are asked for.
    func verdict(at instant: Instant, explained: Bool = false) -> Verdict {
        verdict(of: view(at: instant), at: instant, explained: explained)
    }

    /// The verdict on what matters at an instant.
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

extension DecisionTable.Stretch {
    init(_ period: Period, replacedAt: Instant?) {
        purchasedAt = period.purchasedAt
        expiresAt = period.expiresAt
        isUpgraded = period.isUpgraded
        self.replacedAt = replacedAt
        if let cancelledAt = period.cancelledAt {
            // Once Apple has said so it is void, even if the date it gives is still to come.
            voidAt = min(cancelledAt, period.revocation.asOf)
        } else {
            voidAt = period.isUpgraded ? replacedAt ?? Instant(milliseconds: .min) : nil
        }
    }

    /// Whether it counts no more.
    func isVoid(at instant: Instant) -> Bool { voidAt.map { $0 <= instant } ?? false }
}
