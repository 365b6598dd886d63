/// The basis of a subscription's outage allowance: when access ends, and whether it ends only because no news came.
package struct OutageAllowance: Sendable, Hashable {
    /// Whether access ends only because no news came: a renewal is expected, or the grace period runs out.
    package var expected: Bool
    /// The end of access if nothing more is learnt: the end of the run of entitled spans at, or last before, `as_of`.
    package var accessEndsAt: Instant?

    /// Creates a basis from its parts.
    package init(expected: Bool, accessEndsAt: Instant?) {
        self.expected = expected
        self.accessEndsAt = accessEndsAt
    }
}

extension OutageAllowance {
    /// Determines the basis from the end of access in a timeline.
    package init(of facts: SubscriptionFacts, timeline: Timeline) {
        guard let end = timeline.endOfAccess(at: facts.asOf) else {
            self.init(expected: false, accessEndsAt: nil)
            return
        }
        let renewal = facts.currentRenewal?.value
        let expected: Bool
        switch (end.last.state, end.next?.state) {
        case (_, .revoked):
            expected = false
        case _ where facts.periods.contains { $0.movedTo != nil && $0.expiresAt == end.last.to }:
            expected = false
        case (.gracePeriod, _):
            let intent = renewal?.expirationIntent
            expected = renewal?.willRenew != false && (intent == nil || intent == "2")
        case (.active, _), (.awaitingRenewal, _), (.billingRetry, _), (.expired, _), (.revoked, _):
            expected = renewal?.isExpected ?? true
        }
        self.init(expected: expected, accessEndsAt: end.last.to)
    }
}

extension Timeline {
    /// Returns the last span of the run of entitled spans that contains, or else last precedes, the instant, and the
    /// span after it.
    func endOfAccess(at instant: Instant) -> (last: Span, next: Span?)? {
        guard var index = index(at: instant) else { return nil }
        while !spans[index].entitled {
            guard index > 0 else { return nil }
            index -= 1
        }
        while index + 1 < spans.count, spans[index + 1].entitled { index += 1 }
        return (spans[index], index + 1 < spans.count ? spans[index + 1] : nil)
    }
}

extension OutageAllowance {
    /// Returns when the outage allowance ends; nil if access ends for certain, so that no allowance follows.
    package func allowanceEnd(policy: Policy) -> Instant? {
        expected ? accessEndsAt.map { $0 + policy.outageAllowance } : nil
    }

    /// Returns whether the outage allowance extends access at `now`: the timeline has ended it, but Apple has not been
    /// asked since.
    ///
    /// Such a subscription is awaiting its renewal, entitled and stale. `asOf` is Apple's clock at the newest answer.
    package func applies(at now: Instant, asOf: Instant, policy: Policy) -> Bool {
        guard expected, let end = accessEndsAt else { return false }
        return asOf < end && now >= end && now < end + policy.outageAllowance
    }
}
