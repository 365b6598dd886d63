extension SubscriptionFacts {
    /// Creates the facts that are known at first sight.
    init(firstSeenIn slice: SubscriptionEvidence) {
        switch slice.coverage {
        case .whole: self.init(slice)
        case .head, .piece:
            let nothing = SubscriptionFacts(
                originalTransactionID: slice.originalTransactionID, asOf: slice.asOf, periods: [], renewal: nil)
            self = nothing.adding(partOf: slice)
        }
    }

    /// Returns the facts merged with evidence that is not whole.
    ///
    /// Its renewal information is about one period, which must not give it to another: the information of June in a
    /// text about January is not about the end of January.
    func adding(partOf slice: SubscriptionEvidence) -> SubscriptionFacts {
        let rows = SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: asOf, periods: PeriodGrouping.grouped(slice.sightings),
            renewal: nil)
        let merged = merging(rows)
        var periods = merged.periods
        guard let index = Self.indexOfRenewed(in: periods, by: slice),
            let row = slice.renewal(for: periods[index].productID)
        else { return merged }
        let said = Fact(row.renewal, origin: FactOrigin(asOf: row.asOf, path: row.path, form: row.graceForm))
        periods[index].renewal = periods[index].renewal?.merging(RenewalFacts(said)) ?? RenewalFacts(said)
        return SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: asOf, periods: periods,
            renewal: newest(merged.renewal, said))
    }

    /// Returns the index of the period whose renewal the evidence is about: the period that ends at Apple's
    /// `renewalDate`; without such a date the last one.
    ///
    /// A transaction beside it that ends then names the period, whose end may have moved since: so the order of texts does
    /// not matter.
    private static func indexOfRenewed(in periods: [Period], by slice: SubscriptionEvidence) -> Int? {
        let ends = Set(slice.renewals.compactMap(\.periodEndsAt))
        guard !ends.isEmpty else { return Period.indexOfLast(in: periods) }
        let named = slice.transactions.filter { row in !row.isUpgraded && row.expiresAt.map(ends.contains) ?? false }
        let ids = Set(named.map(\.transactionID))
        return periods.lastIndex { !$0.transactionIDs.isDisjoint(with: ids) }
            ?? periods.lastIndex { ends.contains($0.expiresAt) && !$0.isUpgraded }
            ?? periods.lastIndex { ends.contains($0.expiresAt) }
    }

    /// Returns the facts with the clock as far as the evidence moves it.
    ///
    /// A head moves it to its own instant if the merged facts then have the status that it carries. Everything less
    /// moves it at most to just before the first end of access, because it does not show that no renewal came.
    func movingClock(by slice: SubscriptionEvidence, policy: Policy) -> SubscriptionFacts {
        switch slice.coverage {
        case .whole: return self
        case .head where hasStatus(of: slice, policy: policy): return moved(to: max(asOf, slice.asOf))
        case .head, .piece:
            let limit =
                Timeline(of: self, policy: policy).endOfAccess(at: asOf).map { $0.last.to ?? slice.asOf } ?? asOf
            return moved(to: max(asOf, min(slice.asOf, limit - Delay(milliseconds: 1))))
        }
    }

    /// Returns whether the facts have Apple's status at the evidence's instant, without any leeway.
    private func hasStatus(of slice: SubscriptionEvidence, policy: Policy) -> Bool {
        let now = moved(to: max(asOf, slice.asOf))
        let state = verdict(of: now, at: slice.asOf, policy: policy.with(leeway: .zero)).state
        return slice.status != nil && AppleStatus(state) == slice.status
    }

    private func moved(to instant: Instant) -> SubscriptionFacts {
        SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: instant, periods: periods, renewal: renewal)
    }
}
