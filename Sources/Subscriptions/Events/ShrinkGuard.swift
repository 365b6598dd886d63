/// Prevents a lagging replica at Apple from taking paid time away.
///
/// If an answer moves the end of the last live period back without a cancellation or upgrade, the known end stays until
/// a second, later answer gives the same new end. A period that moved to another subscription comes back by a second
/// answer too, ten minutes after the newest statement that it is elsewhere at the earliest.
enum ShrinkGuard {
    /// How long the newest statement that a period is elsewhere stands at least.
    private static let standsFor = Delay.minutes(10)

    static func accept(
        _ slice: SubscriptionEvidence, into stored: SubscriptionState, policy: Policy
    ) -> (facts: SubscriptionFacts, suspected: SuspectedShrink?) {
        let merged = stored.facts.adding(slice)
        if let back = returned(stored.facts.periods, in: merged.periods) {
            let known = stored.suspectedShrink.flatMap { $0.expiresAt == back.known.expiresAt ? $0 : nil }
            let isSecond = known.map { slice.asOf > $0.asOf } ?? false
            if isSecond, slice.asOf >= back.known.revocation.asOf + standsFor.divided(by: policy.speedup) {
                return (merged.bringingBack(back.index), nil)
            }
            let first = known ?? SuspectedShrink(expiresAt: back.known.expiresAt, asOf: slice.asOf)
            return (merged.replacing(back.index, moved: back.known), first)
        }
        if let waiting = stored.suspectedShrink,
            merged.periods.contains(where: { $0.movedTo != nil && $0.expiresAt == waiting.expiresAt })
        {
            let isElsewhere = slice.transactions.contains { $0.cancellationReason != nil && $0.isUpgraded }
            return (merged, isElsewhere ? nil : waiting)
        }
        guard let head = liveHead(of: stored.facts), let newHead = liveHead(of: merged),
            let index = PeriodMatch(merged.periods).index(of: head)
        else { return (merged, nil) }
        let period = merged.periods[index]
        guard period.expiresAt < head.expiresAt, !period.isUpgraded, period.cancelledAt == nil,
            newHead.expiresAt < head.expiresAt
        else {
            let isSilent = period.terms.asOf == head.terms.asOf
            return (merged, isSilent ? stored.suspectedShrink : nil)
        }
        if let suspected = stored.suspectedShrink, suspected.expiresAt == period.expiresAt {
            if slice.asOf > suspected.asOf { return (merged, nil) }
            return (merged.replacing(index, terms: head.terms), suspected)
        }
        let suspicion = SuspectedShrink(expiresAt: period.expiresAt, asOf: period.terms.asOf)
        return (merged.replacing(index, terms: head.terms), suspicion)
    }

    /// Returns the period that moved away and that the merged facts show here again.
    private static func returned(_ known: [Period], in merged: [Period]) -> (known: Period, index: Int)? {
        let match = PeriodMatch(merged)
        for period in known where period.movedTo != nil {
            if let index = match.index(of: period), merged[index].movedTo == nil { return (period, index) }
        }
        return nil
    }

    private static func liveHead(of facts: SubscriptionFacts) -> Period? {
        facts.periods.filter { !$0.isUpgraded && $0.cancelledAt == nil }
            .reduce(nil) { known, period in
                guard let known, known.endsAfter(period) else { return period }
                return known
            }
    }
}

extension SubscriptionFacts {
    /// Returns the same facts with one period that is not elsewhere any more.
    fileprivate func bringingBack(_ index: Int) -> SubscriptionFacts {
        var periods = periods
        periods[index].details.replacedBy = nil
        return SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: asOf, periods: periods, renewal: renewal)
    }

    /// Returns the same facts with one period elsewhere, as it was known.
    fileprivate func replacing(_ index: Int, moved known: Period) -> SubscriptionFacts {
        var periods = periods
        (periods[index].revocation, periods[index].upgrade) = (known.revocation, known.upgrade)
        return SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: asOf, periods: periods, renewal: renewal)
    }

    /// Returns the same facts with other terms for one period.
    fileprivate func replacing(_ index: Int, terms: Fact<Terms>) -> SubscriptionFacts {
        var periods = periods
        periods[index].terms = terms
        return SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: asOf, periods: periods, renewal: renewal)
    }
}

extension SubscriptionState {
    /// Returns the same state under another version.
    func with(version: Int64) -> SubscriptionState {
        SubscriptionState(copying: self, version: version)
    }
}
