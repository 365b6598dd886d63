extension SubscriptionFacts {
    /// The renewal information about the end of the last period, as one row would state it.
    package var currentRenewal: Fact<Renewal>? { currentRenewalFacts?.said }

    /// The renewal information about the last period, or newer information about a period listed after it that is not
    /// the deciding one.
    ///
    /// Information about an earlier period never ends a later one. The later period supersedes it, even if it starts at
    /// the old expiry, long before Apple gave that information, and even if Apple repeats it while the later one runs.
    var currentRenewalFacts: RenewalFacts? {
        guard let index = Period.indexOfLast(in: periods) else { return renewal.map(RenewalFacts.init) }
        let last = periods[index]
        return periods[(index + 1)...].compactMap(\.renewal).filter { $0.asOf >= last.purchasedAt }
            .reduce(last.renewal) { known, said in
                guard let known, known.asOf >= said.asOf else { return said }
                return known
            }?.after(last.expiresAt)
    }
}
