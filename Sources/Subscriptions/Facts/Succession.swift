extension SubscriptionFacts {
    /// Returns for each period whether it is a renewal: Apple charged for it as it went on, without a purchase. A
    /// renewal pays only the order that its token names, and its delivery says so.
    ///
    /// A first period, an upgrade, what begins while another period runs, and what follows a lapse were bought. Facts of
    /// any order of arrival give the same result.
    package func renewals(by policy: Policy) -> [Bool] {
        periods.indices.map { isRenewal($0, policy) }
    }

    private func isRenewal(_ index: Int, _ policy: Policy) -> Bool {
        let period = periods[index]
        let earlier = periods[..<index].last { !$0.gaveWay && $0.purchasedAt < period.purchasedAt }
        guard let previous = earlier else { return !period.begins(originalTransactionID, policy) }
        if previous.productID != period.productID, tookOver(index, previous, policy) { return false }
        guard period.begins(after: previous, policy) else { return false }
        let gap = period.purchasedAt - previous.expiresAt
        // Without a word about the end, a longer gap in Apple's list is a lapse.
        guard let ending = previous.ending else { return gap <= policy.lateRenewalTolerance }
        return gap <= previous.longestGap(knowing: ending.value, policy)
    }

    /// Returns whether a period replaced another product immediately rather than at the next renewal: the period before,
    /// or a next period that had been charged ahead of time.
    func tookOver(_ index: Int, _ previous: Period, _ policy: Policy) -> Bool {
        let period = periods[index]
        return period.tookOver(previous, policy)
            || periods[(index + 1)...].prefix { $0.gaveWay }.contains { next in
                guard next.productID != period.productID, let cancelledAt = next.cancelledAt else { return false }
                return period.purchasedAt <= cancelledAt + policy.lateRenewalTolerance
                    && cancelledAt <= period.purchasedAt + policy.lateRenewalTolerance
            }
    }
}

extension Period {
    /// Whether the period was charged ahead of time and replaced before it began, so that nothing ever followed it.
    var gaveWay: Bool { isUpgraded && neverBegan }

    /// Returns whether it begins the subscription, as far as its own rows tell. Another period was before it otherwise,
    /// also where Apple does not list that one.
    fileprivate func begins(_ subscription: OriginalTransactionID, _ policy: Policy) -> Bool {
        if transactionIDs.contains(where: { $0.text == subscription.text }) { return true }
        guard let first = details.originalPurchasedAt?.value else { return false }
        return first - policy.lateRenewalTolerance <= purchasedAt && purchasedAt <= first + policy.lateRenewalTolerance
    }

    /// Returns whether it begins at the end of another period or later, not while that one runs.
    func begins(after previous: Period, _ policy: Policy) -> Bool {
        purchasedAt >= previous.expiresAt - previous.tolerance(policy)
    }

    /// Returns the longest gap after it that is no lapse, knowing what Apple said last about its renewal.
    func longestGap(knowing renewal: Renewal?, _ policy: Policy) -> Delay {
        if renewal?.willRenew == false { return policy.lateRenewalTolerance }
        return isMonthly ? policy.longestPaymentLapse : policy.longestLapse
    }

    /// Returns whether the period replaced another product immediately rather than at the next renewal: the other
    /// period is marked as upgraded, or was still far from its expiry.
    fileprivate func tookOver(_ previous: Period, _ policy: Policy) -> Bool {
        if previous.isUpgraded { return purchasedAt <= previous.accessEnd + policy.lateRenewalTolerance }
        return !begins(after: previous, policy) && previous.cancelledAt == nil
    }

    /// Returns how far from this period's expiry a renewal may start: at most a tenth of the period.
    private func tolerance(_ policy: Policy) -> Delay {
        min(policy.lateRenewalTolerance, (expiresAt - purchasedAt).divided(by: 10))
    }
}

extension Policy {
    /// The longest gap between two periods that Apple's own billing retries can still explain. Apple retries for 60
    /// days (Apple: "Reducing involuntary subscriber churn").
    fileprivate var longestLapse: Delay { Delay.days(65).divided(by: speedup) }

    /// The same of two payments of a term, which Apple tries for 90 days.
    fileprivate var longestPaymentLapse: Delay { Delay.days(95).divided(by: speedup) }
}
