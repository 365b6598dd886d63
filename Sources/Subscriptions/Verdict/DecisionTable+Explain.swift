extension DecisionTable {
    /// Returns the flags of the subject and, while active, of the head's renewal.
    func flags(_ decision: Decision, at instant: Instant) -> [Flag] {
        let subject = facts.periods[decision.subject]
        let head = facts.periods[decision.head]
        var flags: [Flag] = []
        if subject.isTrial { flags.append(.trial) }
        if subject.isIntro { flags.append(.intro) }
        if subject.details.promotionalOfferID != nil { flags.append(.promotionalOffer) }
        if subject.details.offerCodeRefName != nil { flags.append(.offerCode) }
        if subject.isShared {
            flags.append(subject.details.ownership?.value == .familyShared ? .familyShared : .assigned)
        }
        if decision.rule.state == .active {
            if head.purchasedAt > instant { flags.append(.futureDated) }
            let renewal = decision.renewal?.said.value
            if renewal?.awaitsPriceConsent == true { flags.append(.priceConsentPending) }
            if let renewal, renewal.isWanted == true, renewal.changes(from: head) {
                flags.append(.changeScheduled)
            }
        }
        return flags.sorted()
    }

    /// Returns the fields that decided: without any one of them the answer, or the rule that gives it, would differ.
    func grounds(of decision: Decision) -> [Ground] {
        let subject = facts.periods[decision.subject]
        let head = facts.periods[decision.head]
        let expiry = expiryGround(decision.rule, head)
        let renewal = decision.renewal
        let intent = ground(decision.rule, renewal?.row, "expiration_intent", renewal?.row.value.expirationIntent)
        let retry = ground(
            decision.rule, renewal?.inBillingRetry, "is_in_billing_retry_period",
            renewal?.inBillingRetry.map { $0.value ? "1" : "0" })
        let status = ground(
            decision.rule, renewal?.willRenew, "auto_renew_status", renewal?.willRenew.map { $0.value ? "1" : "0" })
        switch decision.rule {
        case .runningPeriod, .chargedAhead:
            let running = decision.subject == decision.head ? [] : [expiryGround(decision.rule, subject)]
            return running + [expiry] + [status].compactMap { $0 }
        case .refunded:
            return [cancellation(decision.rule, subject), expiry].compactMap { $0 }
        case .familyRevoked:
            let ownership = ground(
                decision.rule, subject.details.ownership, "in_app_ownership_type", subject.details.ownership?.value.raw)
            return [cancellation(decision.rule, subject), ownership, expiry].compactMap { $0 }
        case .replacementAwaited where subject.movedTo != nil, .replacedElsewhere where subject.movedTo != nil:
            let path = joined(subject.upgrade.path, "original_transaction_id")
            return [Ground(rule: decision.rule.rawValue, path: path, value: subject.movedTo?.text ?? ""), expiry]
        case .replacementAwaited, .replacedElsewhere:
            return [ground(decision.rule, subject.upgrade, "is_upgraded", "true"), expiry].compactMap { $0 }
        case .grace where renewal?.isGraceAssumed == true:
            let path = renewal?.row.path ?? ""
            let place = path.lastIndex(of: ".").map { path[...$0] } ?? ""
            return [expiry, Ground(rule: decision.rule.rawValue, path: "\(place)status", value: "4")]
        case .grace:
            let grace = ground(
                decision.rule, renewal?.graceExpiresAt?.origin, "grace_period_expires_date",
                renewal?.graceExpiresAt?.value)
            return [expiry] + [grace].compactMap { $0 }
        case .billingRetry:
            return [expiry] + [retry].compactMap { $0 }
        case .intentVoluntary, .intentBilling, .intentPriceIncrease, .intentProductUnavailable,
            .intentOther:
            return [expiry] + [intent].compactMap { $0 }
        case .renewalAwaited, .renewalOff, .nothingSaid, .notStarted:
            return [expiry] + [status].compactMap { $0 }
        }
    }

    private func expiryGround(_ rule: Rule, _ period: Period) -> Ground {
        // Only the rows of a legacy answer stand outside a list; their plain field holds the milliseconds.
        let form = period.terms.origin.form ?? (period.path.hasSuffix("]") ? .milliseconds : .plain)
        return Ground(
            rule: rule.rawValue, path: joined(period.path, form.field("expires_date")),
            value: form.value(period.expiresAt))
    }

    private func cancellation(_ rule: Rule, _ period: Period) -> Ground? {
        ground(rule, period.revocation.origin, "cancellation_date", period.cancelledAt)
    }

    private func ground(_ rule: Rule, _ origin: FactOrigin?, _ name: String, _ instant: Instant?) -> Ground? {
        guard let origin, let instant else { return nil }
        let form = origin.form ?? .milliseconds
        return Ground(rule: rule.rawValue, path: joined(origin.path, form.field(name)), value: form.value(instant))
    }

    private func ground<Value>(_ rule: Rule, _ fact: Fact<Value>?, _ field: String, _ value: String?) -> Ground? {
        guard let fact, let value else { return nil }
        return Ground(rule: rule.rawValue, path: joined(fact.path, field), value: value)
    }

    private func joined(_ path: String, _ field: String) -> String {
        path.isEmpty ? field : "\(path).\(field)"
    }
}

extension Renewal {
    /// Returns the product that will replace the given one; nil if the same product renews, if the change already
    /// happened, or if the renewal is another product's.
    func change(from product: ProductID) -> ProductID? {
        guard concerns(product), let next = wantedProductID, next != productID, next != product else { return nil }
        return next
    }

    /// Returns the plan that will follow; nil if it is the plan of the period, or if nothing is stated about it.
    func planChange(from period: Period) -> String? {
        guard concerns(period.productID), let plan = term?.plan else { return nil }
        return plan == period.details.sale?.value.plan ?? Sale.upfront ? nil : plan
    }

    /// Returns whether another product or another plan will follow.
    func changes(from period: Period) -> Bool {
        change(from: period.productID) != nil || planChange(from: period) != nil
    }

    /// Whether it is the renewal of the given product: Apple may still report that of a product which another one
    /// replaced.
    func concerns(_ product: ProductID) -> Bool { productID == product }
}
