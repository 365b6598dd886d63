extension SubscriptionFacts {
    /// The instants of all sources whose facts still count.
    package var clocks: Set<Instant> {
        periods.reduce(into: Set([asOf, renewal?.asOf].compactMap(\.self))) { $0.formUnion($1.clocks) }
    }
}

extension Period {
    fileprivate var clocks: [Instant] {
        let said = [
            details.originalPurchasedAt?.asOf, details.isTrial?.asOf, details.isIntro?.asOf,
            details.promotionalOfferID?.asOf, details.offerCodeRefName?.asOf, details.groupID?.asOf,
            details.ownership?.asOf, details.appAccountToken?.asOf, details.replacedBy?.asOf,
            details.price?.asOf, details.revocationPercentage?.asOf, details.sale?.asOf,
        ]
        return [terms.asOf, revocation.asOf, upgrade.asOf] + said.compactMap(\.self) + (renewal?.clocks ?? [])
    }
}

extension RenewalFacts {
    fileprivate var clocks: [Instant] {
        let said = [
            renewsToProductID?.asOf, willRenew?.asOf, inBillingRetry?.asOf, graceExpiresAt?.asOf,
            graceByStatus?.asOf, term?.asOf, gaveUpAt,
        ]
        return [asOf] + said.compactMap(\.self)
    }
}

extension SubscriptionEvidence {
    /// The instants the evidence speaks for.
    package var clocks: Set<Instant> {
        Set([asOf] + transactions.map(\.asOf) + renewals.map(\.asOf))
    }
}

extension PurchaseEvidence {
    /// The instants the evidence speaks for.
    package var clocks: Set<Instant> { Set([asOf] + transactions.map(\.asOf)) }
}

extension PurchaseFacts {
    /// The instants of all sources whose facts still count.
    package var clocks: Set<Instant> {
        Set(
            [asOf, terms.asOf, revocation.asOf]
                + [ownership?.asOf, appAccountToken?.asOf, price?.asOf, revocationPercentage?.asOf].compactMap(\.self))
    }
}
