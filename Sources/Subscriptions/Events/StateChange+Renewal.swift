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
        guard let was = old.isWanted, let isNow = new.isWanted, was != isNow else { return [] }
        if isNow {
            let cameBack = periodDrafts.contains { $0.event.kind == .subscriptionReactivated }
            return cameBack ? [] : [switched(.autoRenewEnabled, span.productID)]
        }
        return [switched(.autoRenewDisabled, span.productID, takesEffect(new))]
    }

    /// The end of the term of payments that runs, at which the customer's will takes effect; empty outside of a term.
    private func takesEffect(_ renewal: Renewal) -> [String: DetailValue] {
        guard renewal.term?.renews != nil, let ends = after.lastPeriod?.payment?.termEndsAt else { return [:] }
        return ["takes_effect_at": .text(ends.iso8601)]
    }

    private func productDrafts(_ old: Renewal, _ new: Renewal) -> [Draft] {
        guard let oldHead = before.lastPeriod?.productID, let last = after.lastPeriod, new.concerns(last.productID)
        else { return [] }
        let head = last.productID
        let (was, isNow) = (old.change(from: oldHead), new.change(from: head))
        let tookPlace = was.map(isNew) ?? false
        if let isNow, isNow != was || tookPlace {
            var detail: [String: DetailValue] = [
                "from_product_id": .text(head.text), "to_product_id": .text(isNow.text),
            ]
            detail.merge(takesEffect(new)) { $1 }
            return [switched(.productChangeScheduled, head, detail)]
        }
        guard let was, isNow == nil, was != head, !tookPlace else { return planDrafts(old, new, last) }
        return [
            switched(
                .productChangeWithdrawn, head, ["from_product_id": .text(head.text), "to_product_id": .text(was.text)])
        ]
    }

    /// Reports another way to pay of the same product, as a change of what follows.
    private func planDrafts(_ old: Renewal, _ new: Renewal, _ last: Period) -> [Draft] {
        guard let oldLast = before.lastPeriod, old.change(from: oldLast.productID) == nil,
            new.change(from: last.productID) == nil
        else { return [] }
        let (was, isNow) = (old.planChange(from: oldLast), new.planChange(from: last))
        guard was != isNow else { return [] }
        let product = DetailValue.text(last.productID.text)
        var detail: [String: DetailValue] = ["from_product_id": product, "to_product_id": product]
        detail.merge(takesEffect(new)) { $1 }
        if let isNow {
            detail["to_plan"] = .text(isNow)
            return [switched(.productChangeScheduled, last.productID, detail)]
        }
        // A plan that took place is not withdrawn.
        guard let was, was != last.details.sale?.value.plan ?? Sale.upfront else { return [] }
        detail["to_plan"] = .text(was)
        return [switched(.productChangeWithdrawn, last.productID, detail)]
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
    /// The last period.
    fileprivate var lastPeriod: Period? { Period.indexOfLast(in: facts.periods).map { facts.periods[$0] } }
}
