extension SubscriptionFacts {
    /// The renewal information that speaks of the end of the last period.
    ///
    /// The newest one, unless it was said before that period began and not of it: what Apple said of an earlier period
    /// never ends a later one.
    public var currentRenewal: Fact<Renewal>? {
        guard let index = Period.indexOfLast(in: periods) else { return renewal }
        let last = periods[index]
        guard let renewal, renewal.asOf < last.purchasedAt else { return renewal ?? last.ending }
        return last.ending
    }
}
