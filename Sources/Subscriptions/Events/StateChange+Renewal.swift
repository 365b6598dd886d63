extension StateChange {
    /// Customer switches: renewal on and off, scheduled products, price consent.
    ///
    /// Empty if Apple reported the renewal for the first time, or reported nothing newer.
    var renewalDrafts: [Draft] {
        guard let old = before.facts.currentRenewal, let new = after.facts.currentRenewal, new.asOf > old.asOf,
            let span = after.timeline.span(at: after.asOf)
        else { return [] }
        var drafts = statusDrafts(old.value, new.value, span)
        switch span.state {
        case .active, .gracePeriod, .billingRetry, .awaitingRenewal:
            drafts += productDrafts(old.value, new.value) + priceDrafts(old.value, new.value, span)
        case .expired, .revoked:
            break
        }
        return drafts
    }

    private func statusDrafts(_ old: Renewal, _ new: Renewal, _ span: Span) -> [Draft] {
        guard let was = old.willRenew, let isNow = new.willRenew, was != isNow else { return [] }
        if isNow {
            let cameBack = periodDrafts.contains { $0.event.kind == .subscriptionReactivated }
            return cameBack ? [] : [switched(.autoRenewEnabled, span.productID)]
        }
        return [switched(.autoRenewDisabled, span.productID)]
    }

    private func productDrafts(_ old: Renewal, _ new: Renewal) -> [Draft] {
        guard let oldHead = before.lastProduct, let head = after.lastProduct, new.concerns(head) else { return [] }
        let (was, isNow) = (old.change(from: oldHead), new.change(from: head))
        let tookPlace = was.map(isNew) ?? false
        if let isNow, isNow != was || tookPlace {
            return [
                switched(
                    .productChangeScheduled, head,
                    ["from_product_id": .text(head.text), "to_product_id": .text(isNow.text)])
            ]
        }
        guard let was, isNow == nil, was != head, !tookPlace else { return [] }
        return [
            switched(
                .productChangeWithdrawn, head, ["from_product_id": .text(head.text), "to_product_id": .text(was.text)])
        ]
    }

    /// Returns whether a period of the product appeared since the previous answer.
    private func isNew(_ product: ProductID) -> Bool {
        let known = knownPeriods
        return after.facts.periods.enumerated().contains { known[$0.offset] == nil && $0.element.productID == product }
    }

    private func priceDrafts(_ old: Renewal, _ new: Renewal, _ span: Span) -> [Draft] {
        if new.awaitsPriceConsent {
            return old.awaitsPriceConsent ? [] : [switched(.priceIncreasePending, span.productID)]
        }
        guard new.acceptsPrice, !old.acceptsPrice || old.awaitsPriceConsent else { return [] }
        return [switched(.priceIncreaseAccepted, span.productID)]
    }
}

extension Renewal {
    /// Whether the customer agreed to a higher price, or was informed of one that needs no consent.
    fileprivate var acceptsPrice: Bool { priceConsentStatus == "1" || priceIncreaseStatus == "1" }
}

extension SubscriptionState {
    /// The product of the last period.
    fileprivate var lastProduct: ProductID? {
        Period.indexOfLast(in: facts.periods).map { facts.periods[$0].productID }
    }
}
