extension SubscriptionFacts {
    /// The renewal information that speaks of the end of the last period, as one row would say it.
    package var currentRenewal: Fact<Renewal>? { currentRenewalFacts?.said }

    /// What was said of the last period itself, or newer of one that is listed behind it but is not the last word.
    ///
    /// What Apple said of an earlier period never ends a later one: the later one has answered it, even where it starts at
    /// the old expiry, long before that was said.
    var currentRenewalFacts: RenewalFacts? {
        guard let index = Period.indexOfLast(in: periods) else { return renewal.map(RenewalFacts.init) }
        let last = periods[index]
        return periods[(index + 1)...].compactMap(\.renewal).filter { $0.asOf >= last.purchasedAt }
            .reduce(last.renewal) { known, said in
                guard let known, known.asOf >= said.asOf else { return said }
                return known
            }
    }
}
