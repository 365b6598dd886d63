/// The ledger's state of one subscription. All but `version`, `facts`, `leeway` and `retractions` is derived.
package struct SubscriptionState: Sendable, Hashable {
    /// The facts Apple has stated.
    package let facts: SubscriptionFacts
    /// The meaning of the facts over time.
    package let timeline: Timeline
    /// The number of changes, from 1.
    package let version: Int64
    /// The leeway used to make the timeline.
    package let leeway: Delay
    /// The end of access, and whether it waits for an answer.
    package let outageAllowance: OutageAllowance
    /// Whether the customer wants it to renew: Apple's `auto_renew_status`, within a term of payments that of the term; nil
    /// if unknown.
    package let willRenew: Bool?
    /// Whether Apple will try the next payment; nil if unknown. Access and the schedule rest on it.
    package let nextPayment: Bool?
    /// The product that will renew; nil unless `willRenew` is true.
    package let renewsToProductID: ProductID?
    /// The earliest purchase of its periods.
    package let startedAt: Instant
    /// Apple's expiry of the last period charged, as of `facts.asOf`.
    package let expiresAt: Instant
    /// The start of that period.
    package let headStartsAt: Instant
    /// What a newer answer took back of Apple's own words; it waits for a second answer.
    package let retractions: [Retraction]

    /// The number of distinct known periods, including refunded and replaced ones.
    package var periods: Int { facts.periods.count }
    /// Apple's clock at the newest verified answer.
    package var asOf: Instant { facts.asOf }

    /// Derives the state from the facts.
    package init(
        facts: SubscriptionFacts, policy: Policy, version: Int64, retractions: [Retraction] = []
    ) {
        let table = DecisionTable(facts, policy: policy)
        let verdict = table.verdict(at: facts.asOf)
        self.facts = facts
        self.version = version
        self.retractions = retractions
        leeway = policy.leeway
        timeline = Timeline(of: facts, policy: policy)
        outageAllowance = OutageAllowance(of: facts, timeline: timeline)
        let renewal = facts.currentRenewal?.value
        willRenew = renewal?.isWanted
        nextPayment = renewal?.willRenew
        renewsToProductID = willRenew == true ? renewal?.wantedProductID : nil
        startedAt = facts.startedAt ?? facts.asOf
        expiresAt = verdict.expiresAt
        headStartsAt =
            facts.periods.last { $0.expiresAt == verdict.expiresAt }?.purchasedAt ?? facts.startedAt ?? facts.asOf
    }

    /// Copies a state under another version.
    init(copying other: SubscriptionState, version: Int64) {
        self.version = version
        facts = other.facts
        timeline = other.timeline
        leeway = other.leeway
        outageAllowance = other.outageAllowance
        willRenew = other.willRenew
        nextPayment = other.nextPayment
        renewsToProductID = other.renewsToProductID
        startedAt = other.startedAt
        expiresAt = other.expiresAt
        headStartsAt = other.headStartsAt
        retractions = other.retractions
    }
}

/// How the newest period of a subscription is paid, and for how many.
package struct SaleStanding: Sendable, Hashable {
    /// `upfront` or `monthly`; nil where no signed transaction names it, or in words that this version does not know.
    package var plan: String?
    /// The number of the newest payment of a term, from 1; nil outside of a term.
    package var paymentNumber: Int?
    /// The payments of the term.
    package var payments: Int?
    /// The end of the term.
    package var termEndsAt: Instant?
    /// The seats that are paid for, without refunded ones; nil without a group.
    package var seats: Int?

    /// Creates a standing from its parts; without arguments, one without anything known.
    package init(
        plan: String? = nil, paymentNumber: Int? = nil, payments: Int? = nil, termEndsAt: Instant? = nil,
        seats: Int? = nil
    ) {
        self.plan = plan
        self.paymentNumber = paymentNumber
        self.payments = payments
        self.termEndsAt = termEndsAt
        self.seats = seats
    }
}

extension SubscriptionState {
    /// How the newest period is paid. A term that Apple ended by a refund, or that another product replaced, is none.
    package var sale: SaleStanding {
        let rows = facts.periods.filter { $0.expiresAt == expiresAt }
        guard let head = rows.last(where: { $0.details.sale != nil }), let sale = head.details.sale?.value else {
            return SaleStanding()
        }
        let words = [Sale.monthly: "monthly", Sale.upfront: "upfront"]
        let term = head.cancelledAt == nil && !head.isUpgraded ? sale.payment : nil
        // A member's text repeats the seats of the purchaser.
        let seats = rows.filter { $0.cancelledAt == nil && !$0.isUpgraded && !$0.isShared }
            .compactMap { $0.details.sale?.value.seats }
        return SaleStanding(
            plan: words[sale.plan ?? Sale.upfront], paymentNumber: term?.number, payments: term?.total,
            termEndsAt: term?.termEndsAt,
            seats: seats.isEmpty ? nil : seats.reduce(0) { $0 + $1.count - $1.revoked })
    }
}
