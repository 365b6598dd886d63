extension DecisionTable {
    /// Returns the decision of the first matching row of the table at an instant; nil if no period exists yet.
    func decide(_ view: View, at instant: Instant) -> Decision? {
        if let running = view.running {
            let head = view.head ?? running
            return Decision(
                rule: .runningPeriod, subject: running, head: head, entitledUntil: stretches[head].expiresAt,
                renewal: renewal(of: head))
        }
        if let head = view.head, stretches[head].expiresAt > instant {
            return Decision(
                rule: .chargedAhead, subject: head, head: head, entitledUntil: stretches[head].expiresAt,
                renewal: renewal(of: head))
        }
        let replaced = view.replaced.flatMap { isOpen($0, at: instant) ? $0 : nil }
        if let refunded = view.refunded, follows(refunded, view.head), !isLater(replaced, refunded) {
            return Decision(
                rule: facts.periods[refunded].isShared ? .familyRevoked : .refunded, subject: refunded,
                head: refunded, entitledUntil: nil, renewal: renewal(of: refunded))
        }
        if let replaced, view.head.map({ isLater(replaced, $0) }) ?? true {
            return decideReplaced(replaced, at: instant)
        }
        return (view.head ?? view.replaced).map { decideLapsed($0, at: instant) }
    }

    /// Returns whether the refunded period comes after every live one, so that its refund decides.
    private func follows(_ refunded: Int, _ head: Int?) -> Bool {
        guard let head else { return true }
        return stretches[refunded].expiresAt > stretches[head].expiresAt
            && stretches[refunded].purchasedAt >= stretches[head].purchasedAt
    }

    private func isLater(_ index: Int?, _ other: Int) -> Bool {
        index.map { stretches[$0].purchasedAt > stretches[other].purchasedAt } ?? false
    }

    /// Returns whether no replacement of an upgraded period is visible yet in this subscription.
    private func isOpen(_ replaced: Int, at instant: Instant) -> Bool {
        guard let replacedAt = stretches[replaced].replacedAt else { return true }
        return instant < facts.asOf && instant < replacedAt
    }

    private func decideReplaced(_ index: Int, at instant: Instant) -> Decision {
        let end = stretches[index].expiresAt
        if facts.periods[index].details.replacedBy != nil || facts.periods[index].movedTo != nil && end <= instant {
            return Decision(
                rule: .replacedElsewhere, subject: index, head: index, entitledUntil: nil, renewal: nil)
        }
        guard end > instant else { return decideLapsed(index, at: instant) }
        return Decision(
            rule: .replacementAwaited, subject: index, head: index, entitledUntil: end, renewal: renewal(of: index))
    }

    /// Decides by rows 7 to 15: a period is over and nothing follows.
    func decideLapsed(_ index: Int, at instant: Instant) -> Decision {
        let renewal = renewal(of: index)
        let (rule, until) = lapse(index, renewal, at: instant)
        return Decision(rule: rule, subject: index, head: index, entitledUntil: until, renewal: renewal)
    }

    private func lapse(_ index: Int, _ facts: RenewalFacts?, at instant: Instant) -> (Rule, until: Instant?) {
        if let grace = graceEnd(of: index, facts), grace > instant { return (.grace, grace) }
        let renewal = facts?.said.value
        let intent = renewal?.expirationIntent
        if renewal?.inBillingRetry == true, intent == nil || intent == "2" { return (.billingRetry, nil) }
        let leewayEnd = stretches[index].expiresAt + policy.leeway
        if renewal?.isExpected ?? true, instant < leewayEnd { return (.renewalAwaited, leewayEnd) }
        switch intent {
        case "1": return (.intentVoluntary, nil)
        case "2": return (.intentBilling, nil)
        case "3": return (.intentPriceIncrease, nil)
        case "4": return (.intentProductUnavailable, nil)
        case .some: return (.intentOther, nil)
        case nil: return (renewal?.willRenew == false ? .renewalOff : .nothingSaid, nil)
        }
    }
}
