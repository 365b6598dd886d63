/// Everything Apple has stated about one subscription, merged so that the newest source wins for each fact.
///
/// Merging is commutative, associative and idempotent: the order in which answers are settled does not matter.
package struct SubscriptionFacts: Sendable, Hashable {
    /// The subscription.
    package let originalTransactionID: OriginalTransactionID
    /// Apple's clock at the newest verified answer; never goes back.
    package let asOf: Instant
    /// Its periods in canonical order: by start, then end, then identifier.
    package let periods: [Period]
    /// The newest renewal row of any period, as received; `currentRenewal` gives its meaning.
    package let renewal: Fact<Renewal>?

    /// Creates facts from stored parts; brings the periods into canonical order.
    package init(
        originalTransactionID: OriginalTransactionID, asOf: Instant, periods: [Period], renewal: Fact<Renewal>?
    ) {
        self.originalTransactionID = originalTransactionID
        self.asOf = asOf
        self.periods = periods.sorted(by: Period.precedes)
        self.renewal = renewal
    }

    /// Creates the facts that one answer states.
    package init(_ slice: SubscriptionEvidence) {
        var periods = PeriodGrouping.grouped(slice.sightings)
        var renewal: Fact<Renewal>?
        if let last = Period.indexOfLast(in: periods) {
            let head = Period.indexOfHead(in: periods)
            let spokenOf = periods[last].isRefunded ? head ?? last : last
            if let row = slice.renewal(for: periods[spokenOf].productID) {
                let origin = FactOrigin(asOf: row.asOf, path: row.path, form: row.graceForm)
                let fact = Fact(row.renewal, origin: origin)
                var said = RenewalFacts(fact)
                if !row.statesGrace { said.gaveUpAt = nil }
                periods[last].renewal = said
                if periods[spokenOf].expiresAt > slice.asOf { periods[spokenOf].renewal = said }
                renewal = fact
            }
        }
        self.init(
            originalTransactionID: slice.originalTransactionID, asOf: slice.asOf, periods: periods, renewal: renewal)
    }

    /// Returns the facts of both, each from its newest source; `asOf` is the later one.
    package func merging(_ other: SubscriptionFacts) -> SubscriptionFacts {
        SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: max(asOf, other.asOf),
            periods: PeriodGrouping.grouped(periods + other.periods), renewal: newest(renewal, other.renewal))
    }

    /// Returns these facts merged with more evidence.
    package func adding(_ slice: SubscriptionEvidence) -> SubscriptionFacts { merging(SubscriptionFacts(slice)) }

    /// Returns whether both state the same, regardless of source and instant.
    package func sameMeaning(as other: SubscriptionFacts) -> Bool {
        periods.count == other.periods.count
            && zip(periods, other.periods).allSatisfy { $0.sameMeaning(as: $1) }
    }

    /// The earliest purchase of its periods.
    package var startedAt: Instant? { periods.first?.purchasedAt }

    /// The subscription's group, from the newest source.
    package var groupID: SubscriptionGroupID? {
        periods.reduce(nil as Fact<SubscriptionGroupID>?) { newest($0, $1.details.groupID) }?.value
    }

    /// The customer's token, from the newest source. It belongs to the purchaser.
    package var appAccountToken: String? {
        periods.reduce(nil as Fact<String>?) { newest($0, $1.details.appAccountToken) }?.value
    }
}

extension SubscriptionEvidence {
    /// The evidence's rows as periods, not yet grouped.
    ///
    /// Another subscription that took over replaced the upgraded row that starts last; earlier upgraded rows had
    /// successors of their own.
    var sightings: [Period] {
        let lastUpgrade = transactions.filter(\.isUpgraded).map(\.purchasedAt).max()
        return transactions.compactMap { row in
            Period(
                row: row.speaking(inAnswerOf: asOf), replacedBy: row.purchasedAt == lastUpgrade ? replacedBy : nil)
        }
    }
}
