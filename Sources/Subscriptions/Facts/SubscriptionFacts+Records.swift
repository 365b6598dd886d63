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

    /// Returns the records to insert (`id` nil) or update if `stored` is already written.
    ///
    /// A record that differs from the stored one only in paths is not written again.
    package func recordsToWrite(since stored: SubscriptionFacts?) -> [PeriodRecord] {
        var written: [Int64: PeriodRecord] = [:]
        for record in stored?.records ?? [] {
            if let id = record.id { written[id] = record }
        }
        return records.filter { record in
            guard let id = record.id, let known = written[id] else { return true }
            return record.withoutPaths != known.withoutPaths
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
        copy.ending?.path = ""
        copy.ending?.olderFields = (ending?.olderFields ?? [:]).mapValues { FactOrigin(asOf: $0.asOf, path: "") }
        copy.olderFacts = olderFacts.mapValues { FactOrigin(asOf: $0.asOf, path: "") }
        return copy
    }

    /// Creates the record of a period, with the clocks that differ from the subscription's.
    init(_ period: Period, subscriptionAsOf: Instant, renewalAsOf: Instant?) {
        let details = period.details
        var older: [FactName: FactOrigin] = [:]
        func note<Value>(_ name: FactName, _ fact: Fact<Value>?) {
            if let fact, fact.origin != period.terms.origin { older[name] = fact.origin }
        }
        note(.revocation, period.revocation)
        note(.upgrade, period.upgrade)
        note(.originalPurchasedAt, details.originalPurchasedAt)
        note(.isTrial, details.isTrial ?? .unspoken)
        note(.isIntro, details.isIntro ?? .unspoken)
        note(.promotionalOfferID, details.promotionalOfferID)
        note(.offerCodeRefName, details.offerCodeRefName)
        note(.groupID, details.groupID)
        note(.ownership, details.ownership)
        note(.appAccountToken, details.appAccountToken)
        note(.replacedBy, details.replacedBy)
        note(.price, details.price)
        note(.revocationPercentage, details.revocationPercentage)
        note(.sale, details.sale)
        self.init(
            id: period.id, webOrderLineItemID: period.webOrderLineItemID, transactionIDs: period.transactionIDs,
            terms: period.terms.value, revocation: period.revocation.value,
            isUpgraded: period.upgrade.value,
            originalPurchasedAt: details.originalPurchasedAt?.value, isTrial: details.isTrial?.value ?? false,
            isIntro: details.isIntro?.value ?? false, promotionalOfferID: details.promotionalOfferID?.value,
            offerCodeRefName: details.offerCodeRefName?.value, groupID: details.groupID?.value,
            ownership: details.ownership?.value, appAccountToken: details.appAccountToken?.value,
            replacedBy: details.replacedBy?.value, price: details.price?.value,
            revocationPercentage: details.revocationPercentage?.value, sale: details.sale?.value,
            asOf: period.asOf == subscriptionAsOf ? nil : period.asOf,
            path: period.path, olderFacts: older,
            ending: period.renewal.map { Ending($0, renewalAsOf: renewalAsOf) })
    }
}

extension Period {
    /// Restores the period from which a record was made.
    init(_ record: PeriodRecord, subscriptionAsOf: Instant, renewalAsOf: Instant) {
        let common = FactOrigin(asOf: record.asOf ?? subscriptionAsOf, path: record.path)
        func fact<Value>(_ name: PeriodRecord.FactName, _ value: Value) -> Fact<Value> {
            Fact(value, origin: record.olderFacts[name] ?? common)
        }
        var details = PeriodDetails()
        details.originalPurchasedAt = record.originalPurchasedAt.map { fact(.originalPurchasedAt, $0) }
        details.isTrial = fact(.isTrial, record.isTrial).ifSpoken
        details.isIntro = fact(.isIntro, record.isIntro).ifSpoken
        details.promotionalOfferID = record.promotionalOfferID.map { fact(.promotionalOfferID, $0) }
        details.offerCodeRefName = record.offerCodeRefName.map { fact(.offerCodeRefName, $0) }
        details.groupID = record.groupID.map { fact(.groupID, $0) }
        details.ownership = record.ownership.map { fact(.ownership, $0) }
        details.appAccountToken = record.appAccountToken.map { fact(.appAccountToken, $0) }
        details.replacedBy = record.replacedBy.map { fact(.replacedBy, $0) }
        details.price = record.price.map { fact(.price, $0) }
        details.revocationPercentage = record.revocationPercentage.map { fact(.revocationPercentage, $0) }
        details.sale = record.sale.map { fact(.sale, $0) }
        self.init(
            id: record.id, webOrderLineItemID: record.webOrderLineItemID, transactionIDs: record.transactionIDs,
            terms: Fact(record.terms, origin: common), revocation: fact(.revocation, record.revocation),
            upgrade: fact(.upgrade, record.isUpgraded),
            details: details,
            renewal: record.ending.map { RenewalFacts($0, renewalAsOf: renewalAsOf) })
    }
}

extension Fact<Bool> {
    /// The stored form of a flag that no row mentioned.
    fileprivate static var unspoken: Fact { Fact(false, origin: .unspoken) }

    /// The flag, nil if no row mentioned it.
    fileprivate var ifSpoken: Fact? { origin == .unspoken ? nil : self }
}
