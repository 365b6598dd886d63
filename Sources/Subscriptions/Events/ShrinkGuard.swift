/// Prevents a lagging replica at Apple from taking paid time away.
///
/// If an answer moves the end of the last live period back without a cancellation or upgrade, the known end stays until
/// a second, later answer gives the same new end.
enum ShrinkGuard {
    static func accept(
        _ slice: SubscriptionEvidence, into stored: SubscriptionState
    ) -> (facts: SubscriptionFacts, suspected: SuspectedShrink?) {
        let merged = stored.facts.adding(slice)
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

    private static func liveHead(of facts: SubscriptionFacts) -> Period? {
        facts.periods.filter { !$0.isUpgraded && $0.cancelledAt == nil }
            .reduce(nil) { known, period in
                guard let known, known.endsAfter(period) else { return period }
                return known
            }
    }
}

extension SubscriptionFacts {
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
