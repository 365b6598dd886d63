extension SubscriptionFacts {
    /// Returns whether evidence that is not whole joins these facts: each of its periods is known or follows the last
    /// known one without a gap, and its renewal information is about one of them.
    ///
    /// Where it does not, a period between may be unknown. Then only a whole answer shows what happened.
    package func joins(_ slice: SubscriptionEvidence, policy: Policy) -> Bool {
        let known = PeriodMatch(periods)
        var all = periods
        for sighting in PeriodGrouping.grouped(slice.sightings) where known.index(of: sighting, by: policy) == nil {
            guard sighting.follows(all, within: policy.lateRenewalTolerance) else { return false }
            all.append(sighting)
        }
        return slice.renewals.allSatisfy { $0.concerns(all, at: slice.asOf) }
    }
}

extension PeriodMatch {
    /// Returns the index of the known period that a new sighting describes; nil if it is new.
    fileprivate func index(of sighting: Period, by policy: Policy) -> Int? {
        index(of: sighting) ?? sighting.transactionIDs.lazy.compactMap { index(ofTransaction: $0) }.first
    }
}

extension Period {
    /// Returns whether the period starts within the last known one, or at its end.
    fileprivate func follows(_ known: [Period], within tolerance: Delay) -> Bool {
        guard let last = known.max(by: { $1.endsAfter($0) }) else { return false }
        return purchasedAt >= last.purchasedAt && purchasedAt <= last.expiresAt + tolerance
    }
}

extension RenewalRow {
    /// Returns whether the renewal is that of one of the periods.
    ///
    /// Apple's `renewalDate` names the period by its end. Without it, the period must still run, or the renewal states
    /// that it did not renew.
    fileprivate func concerns(_ periods: [Period], at instant: Instant) -> Bool {
        if renewal.inBillingRetry == true || renewal.expirationIntent != nil { return true }
        if let periodEndsAt { return periods.contains { $0.expiresAt == periodEndsAt } }
        return periods.contains { $0.expiresAt > instant }
    }
}
