/// Everything Apple has stated about one subscription, merged so that the newest source wins for each fact. Merging is
/// commutative, associative and idempotent: the order in which answers are settled does not matter.
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
        var periods = PeriodGrouping.grouped(slice.sightings + slice.elsewhere)
        var renewal: Fact<Renewal>?
        if let last = Period.indexOfLast(in: periods) {
            let head = Period.indexOfHead(in: periods)
            let spokenOf = periods[last].isRefunded ? head ?? last : last
            if let row = slice.renewal(for: periods[spokenOf].productID) {
                let origin = FactOrigin(asOf: row.asOf, path: row.path, form: row.graceForm)
                let fact = Fact(row.renewal, origin: origin)
                var said = RenewalFacts(fact)
                if !row.statesGrace || row.asOf < periods[last].expiresAt { (said.gaveUp, said.gaveUpAt) = (nil, nil) }
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
    /// The evidence's rows as periods, not yet grouped. Another subscription that took over replaced the upgraded row
    /// that starts last; earlier upgraded rows had successors of their own.
    var sightings: [Period] {
        let lastUpgrade = transactions.filter(\.isUpgraded).map(\.purchasedAt).max()
        return transactions.compactMap { row in
            Period(row: row.yieldingToAnswer(at: asOf), replacedBy: row.purchasedAt == lastUpgrade ? replacedBy : nil)
        }
    }
}

extension SubscriptionFacts {
    /// Restores facts from the ledger's records.
    package init(
        originalTransactionID: OriginalTransactionID, asOf: Instant, records: [PeriodRecord], renewal: Fact<Renewal>?
    ) {
        self.init(
            originalTransactionID: originalTransactionID, asOf: asOf,
            periods: records.map { Period($0, subscriptionAsOf: asOf, renewalAsOf: renewal?.asOf ?? asOf) },
            renewal: renewal)
    }

    /// The stored form of its periods, in canonical order.
    package var records: [PeriodRecord] {
        periods.map { PeriodRecord($0, subscriptionAsOf: asOf, renewalAsOf: renewal?.asOf) }
    }

    /// Returns the records to insert (`id` nil) or update if `stored` is already written. One that differs only in
    /// paths is not written again. Whether one is a renewal depends on the other periods.
    package func recordsToWrite(since stored: SubscriptionFacts?, policy: Policy) -> [PeriodRecord] {
        var written: [Int64: PeriodRecord] = [:]
        for record in stored?.records(by: policy) ?? [] {
            if let id = record.id { written[id] = record }
        }
        return records(by: policy).filter { record in
            guard let id = record.id, let known = written[id] else { return true }
            return record.withoutPaths != known.withoutPaths
        }
    }

    private func records(by policy: Policy) -> [PeriodRecord] {
        zip(records, renewals(by: policy)).map { record, isRenewal in
            var record = record
            record.isRenewal = isRenewal
            return record
        }
    }

    /// Returns the keys of stored periods that turned out to be duplicates; their rows must be deleted.
    package func periodIDsToDelete(since stored: SubscriptionFacts?) -> [Int64] {
        let kept = Set(periods.compactMap(\.id))
        return (stored?.periods ?? []).compactMap(\.id).filter { !kept.contains($0) }.sorted()
    }
}

extension PeriodRecord {
    /// The record with every path emptied, because rows change places in every answer.
    package var withoutPaths: PeriodRecord {
        var copy = self
        copy.path = ""
        copy.revocation = revocation.withoutPath
        copy.upgrade = upgrade.withoutPath
        copy.details = details.withoutPaths
        copy.details.arrival?.path = ""
        copy.ending?.path = ""
        copy.ending?.olderFields = (ending?.olderFields ?? [:]).mapValues { FactOrigin(asOf: $0.asOf, path: "") }
        return copy
    }

    /// Creates the record of a period, with the clocks that differ from the subscription's.
    init(_ period: Period, subscriptionAsOf: Instant, renewalAsOf: Instant?) {
        let newest = period.terms.origin
        self.init(
            id: period.id, webOrderLineItemID: period.webOrderLineItemID, transactionIDs: period.transactionIDs,
            terms: period.terms.value, revocation: period.revocation.replacing(newest, by: .row),
            upgrade: period.upgrade.replacing(newest, by: .row),
            details: period.details.replacing(newest, by: .row),
            asOf: period.asOf == subscriptionAsOf ? nil : period.asOf, path: period.path,
            ending: period.renewal.map { Ending($0, renewalAsOf: renewalAsOf) })
    }
}

extension Period {
    /// Restores the period from which a record was made.
    init(_ record: PeriodRecord, subscriptionAsOf: Instant, renewalAsOf: Instant) {
        let newest = FactOrigin(asOf: record.asOf ?? subscriptionAsOf, path: record.path)
        self.init(
            id: record.id, webOrderLineItemID: record.webOrderLineItemID, transactionIDs: record.transactionIDs,
            terms: Fact(record.terms, origin: newest), revocation: record.revocation.replacing(.row, by: newest),
            upgrade: record.upgrade.replacing(.row, by: newest),
            details: record.details.replacing(.row, by: newest),
            renewal: record.ending.map { RenewalFacts($0, renewalAsOf: renewalAsOf) })
    }
}

extension SubscriptionFacts {
    /// The renewal information about the end of the last period, as one row would state it.
    package var currentRenewal: Fact<Renewal>? { currentRenewalFacts?.said }

    /// The renewal information about the last period, or newer information about a period listed after it that is not
    /// the deciding one. Information about an earlier period never ends a later one, even if the later one starts at
    /// the old expiry, before Apple gave that information, and even if Apple repeats it while the later one runs.
    var currentRenewalFacts: RenewalFacts? {
        guard let index = Period.indexOfLast(in: periods) else { return renewal.map(RenewalFacts.init) }
        let last = periods[index]
        return periods[(index + 1)...].compactMap(\.renewal).filter { $0.asOf >= last.purchasedAt }
            .reduce(renewalFacts(after: index)) { known, said in
                guard let known, known.asOf >= said.asOf else { return said }
                return known
            }?.after(last)
    }
}
