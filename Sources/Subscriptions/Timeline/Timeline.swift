/// A stretch of time with one unchanged verdict.
package struct Span: Sendable, Hashable {
    /// The start.
    package var from: Instant
    /// The end; nil for never.
    package var to: Instant?
    package var state: State
    /// The reason, for expired, revoked and awaiting renewal.
    package var reason: Reason?
    package var productID: ProductID
    /// Apple's expiry of the last period charged.
    package var expiresAt: Instant
    /// The end of access if nothing more is learnt; nil without access.
    package var entitledUntil: Instant?
    /// The flags, sorted.
    package var flags: [Flag]

    package init(from: Instant, to: Instant?, verdict: Verdict) {
        self.from = from
        self.to = to
        state = verdict.state
        reason = verdict.reason
        productID = verdict.productID
        expiresAt = verdict.expiresAt
        entitledUntil = verdict.entitledUntil
        flags = verdict.flags
    }

    /// Whether the customer has access.
    package var entitled: Bool { state.isEntitled }

    /// Returns whether both are equal apart from their start and end.
    package func saysTheSame(as other: Span) -> Bool {
        var moved = other
        moved.from = from
        moved.to = to
        return self == moved
    }
}

/// The whole life of a subscription, from its first period to infinity, if nothing more is learnt. Spans follow each
/// other without a gap; the last has no end.
package struct Timeline: Sendable, Hashable {
    /// The spans, in order.
    package let spans: [Span]

    /// Creates the timeline of the facts: their verdict at every instant.
    package init(of facts: SubscriptionFacts, policy: Policy) {
        var spans: [Span] = []
        let table = DecisionTable(facts, policy: policy)
        var sweep = DecisionSweep(table)
        for instant in table.boundaries {
            let verdict = table.verdict(of: sweep.view(at: instant), at: instant, explained: false)
            let span = Span(from: instant, to: nil, verdict: verdict)
            if let last = spans.last {
                if last.saysTheSame(as: span) { continue }
                spans[spans.count - 1].to = instant
            }
            spans.append(span)
        }
        self.spans = spans
    }

    /// Returns the span that contains the instant; nil before the first.
    package func span(at instant: Instant) -> Span? {
        index(at: instant).map { spans[$0] }
    }

    /// Returns the index of the span that contains the instant; nil before the first.
    func index(at instant: Instant) -> Int? {
        let next = spans.endOfPrefix(where: { $0.from <= instant })
        return next == 0 ? nil : next - 1
    }
}

extension Array {
    /// Returns the index after the elements that satisfy a condition, by bisection; all that satisfy it come first.
    func endOfPrefix(where isBefore: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// The ledger's state of one subscription. All but `version`, `facts`, `leeway` and `retractions` is derived.
package struct SubscriptionState: Sendable, Hashable {
    /// The facts Apple has stated.
    package let facts: SubscriptionFacts
    /// The meaning of the facts over time.
    package let timeline: Timeline
    /// The number of changes, from 1.
    package private(set) var version: Int64
    /// The leeway used to make the timeline.
    package let leeway: Delay
    /// The end of access, and whether it waits for an answer.
    package let outageAllowance: OutageAllowance
    /// Whether the customer wants it to renew: Apple's `auto_renew_status`, or that of the term; nil if unknown.
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
    package init(facts: SubscriptionFacts, policy: Policy, version: Int64, retractions: [Retraction] = []) {
        let table = DecisionTable(facts, policy: policy)
        let verdict = table.verdict(at: facts.asOf)
        self.facts = facts
        self.version = version
        self.retractions = retractions
        leeway = policy.leeway
        timeline = Timeline(of: facts, policy: policy)
        outageAllowance = OutageAllowance(of: facts, timeline: timeline)
        let renewal = facts.currentRenewal?.value
        // The refund of the current payment ends a term, and so does Apple when it gives up charging, whatever its
        // status of the next payment goes on to say.
        let payments = facts.periods.filter { $0.expiresAt == verdict.expiresAt && $0.isMonthly }
        let isRefunded = verdict.state == .revoked && payments.contains(where: \.isRefunded)
        let isGivenUp = verdict.state == .expired && !payments.isEmpty && renewal?.isGivenUp == true
        willRenew = isGivenUp ? false : isRefunded ? renewal?.term?.renews ?? false : renewal?.isWanted
        nextPayment = isRefunded || isGivenUp ? false : renewal?.willRenew
        renewsToProductID = willRenew == true ? renewal?.wantedProductID : nil
        startedAt = facts.startedAt ?? facts.asOf
        expiresAt = verdict.expiresAt
        headStartsAt =
            facts.periods.last { $0.expiresAt == verdict.expiresAt }?.purchasedAt ?? facts.startedAt ?? facts.asOf
    }

    /// Returns the same state under another version.
    func with(version: Int64) -> SubscriptionState {
        var copy = self
        copy.version = version
        return copy
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
        // A transaction that was refunded beside others says nothing of what still runs.
        let live = rows.filter(\.isLive)
        let head = live.last { $0.payment != nil } ?? live.last { $0.details.sale != nil }
        guard let sale = (head ?? rows.last { $0.details.sale != nil })?.details.sale?.value else {
            return SaleStanding()
        }
        let term = head?.payment
        // A member's text repeats the seats of the purchaser.
        let seats = live.filter { !$0.isShared }.compactMap { $0.details.sale?.value.seats }
        return SaleStanding(
            plan: sale.plan.flatMap(Sale.word(of:)), paymentNumber: term?.number, payments: term?.total,
            termEndsAt: term?.termEndsAt,
            seats: seats.isEmpty ? nil : seats.reduce(0) { $0 + $1.count - $1.revoked })
    }
}

/// The basis of a subscription's outage allowance: when access ends, and whether it ends only because no news came.
package struct OutageAllowance: Sendable, Hashable {
    /// Whether access ends only because no news came: a renewal is expected, or the grace period runs out.
    package var expected: Bool
    /// The end of access if nothing more is learnt: the end of the run of entitled spans at, or last before, `as_of`.
    package var accessEndsAt: Instant?
}

extension OutageAllowance {
    /// Determines the basis from the end of access in a timeline.
    package init(of facts: SubscriptionFacts, timeline: Timeline) {
        guard let end = timeline.endOfAccess(at: facts.asOf) else {
            self.init(expected: false, accessEndsAt: nil)
            return
        }
        let renewal = facts.currentRenewal?.value
        let expected =
            switch (end.last.state, end.next?.state) {
            case (_, .revoked): false
            case _ where facts.periods.contains { $0.movedTo != nil && $0.expiresAt == end.last.to }: false
            case (.gracePeriod, _): renewal?.willRenew != false && [nil, "2"].contains(renewal?.expirationIntent)
            case (.active, _), (.awaitingRenewal, _), (.billingRetry, _), (.expired, _), (.revoked, _):
                renewal?.isExpected ?? true
            }
        self.init(expected: expected, accessEndsAt: end.last.to)
    }

    /// Returns when the outage allowance ends; nil if access ends for certain, so that no allowance follows.
    package func allowanceEnd(policy: Policy) -> Instant? {
        expected ? accessEndsAt.map { $0 + policy.outageAllowance } : nil
    }

    /// Returns whether the outage allowance extends access at `now`: the timeline has ended it, but Apple has not been
    /// asked since. Such a subscription is awaiting its renewal, entitled and stale. `asOf` is Apple's newest clock.
    package func applies(at now: Instant, asOf: Instant, policy: Policy) -> Bool {
        guard expected, let end = accessEndsAt else { return false }
        return asOf < end && now >= end && now < end + policy.outageAllowance
    }
}

extension Timeline {
    /// Returns the last span of the entitled run at the instant, or of the last one before it, and the span after it.
    fileprivate func endOfAccess(at instant: Instant) -> (last: Span, next: Span?)? {
        guard var index = index(at: instant) else { return nil }
        while !spans[index].entitled {
            guard index > 0 else { return nil }
            index -= 1
        }
        while index + 1 < spans.count, spans[index + 1].entitled { index += 1 }
        return (spans[index], index + 1 < spans.count ? spans[index + 1] : nil)
    }
}
