extension SubscriptionFacts {
    /// Returns for each period whether it is a renewal: Apple charged for it as it went on, without a purchase. A
    /// renewal pays only the order that its token names. A first period, an upgrade, what begins while another period
    /// runs, and what follows a lapse were bought. Facts of any order of arrival give the same result.
    package func renewals(by policy: Policy) -> [Bool] {
        periods.indices.map { isRenewal($0, policy) }
    }

    private func isRenewal(_ index: Int, _ policy: Policy) -> Bool {
        let period = periods[index]
        let earlier = periods[..<index].lastIndex { !$0.gaveWay && $0.purchasedAt < period.purchasedAt }
        guard let before = earlier.map(running(beside:)) else { return !period.begins(originalTransactionID, policy) }
        let previous = periods[before]
        if previous.productID != period.productID, tookOver(index, previous, policy) { return false }
        guard period.begins(after: previous, policy) else { return false }
        let gap = period.purchasedAt - previous.expiresAt
        let renewal = renewalFacts(after: before)?.after(previous).said.value
        // Without a word about the end, a longer gap in Apple's list is a lapse.
        guard renewal != nil || period.continuesTerm(of: previous) else { return gap <= policy.lateRenewalTolerance }
        return gap <= previous.longestGap(before: period, knowing: renewal, policy)
    }

    /// Returns the transaction that runs to a period's end: of several the last to begin that was not taken back.
    func running(beside index: Int) -> Int {
        companions(of: index).last { periods[$0].isLive } ?? index
    }

    /// Returns what Apple said of the renewal after a period, about whichever of its transactions it said so.
    func renewalFacts(after index: Int) -> RenewalFacts? {
        companions(of: index).map { periods[$0].renewal }.reduce(nil, merged)
    }

    /// The transactions of one period, in order: they end together.
    private func companions(of index: Int) -> [Int] {
        guard periods[index].isOneOfSeveral else { return [index] }
        let end = periods[index].expiresAt
        return periods.indices.filter { periods[$0].expiresAt == end && periods[$0].movedTo == nil || $0 == index }
    }

    /// Returns, for every payment of a term, when the next payment of it began, if that was after the leeway: the numbers
    /// prove that Apple went on to charge. Only what follows first tells, because another term has the same numbers.
    func recoveries(by policy: Policy) -> [Instant?] {
        periods.indices.map { index in
            let period = periods[index]
            guard period.payment.map({ !$0.isLast }) ?? false else { return nil }
            let next = periods[(index + 1)...].first { $0.expiresAt > period.expiresAt && !$0.neverBegan }
            guard let next, next.continuesTerm(of: period) else { return nil }
            return next.purchasedAt > period.expiresAt + policy.leeway ? next.purchasedAt : nil
        }
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

    /// Returns whether it begins the subscription, as far as its own rows tell; Apple need not list a period before it.
    fileprivate func begins(_ subscription: OriginalTransactionID, _ policy: Policy) -> Bool {
        if transactionIDs.contains(where: { $0.text == subscription.text }) { return true }
        guard let first = details.originalPurchasedAt?.value else { return false }
        return first - policy.lateRenewalTolerance <= purchasedAt && purchasedAt <= first + policy.lateRenewalTolerance
    }

    /// Returns whether it begins at the end of another period or later, not while that one runs.
    func begins(after previous: Period, _ policy: Policy) -> Bool {
        purchasedAt >= previous.expiresAt - previous.tolerance(policy)
    }

    /// Returns the longest gap after it that is no lapse, by what follows it and what Apple said last of its renewal.
    func longestGap(before next: Period, knowing renewal: Renewal?, _ policy: Policy) -> Delay {
        if next.continuesTerm(of: self) { return policy.longestPaymentLapse }
        let isTermOver =
            isMonthly && (isRefunded(before: next) || renewal?.isGivenUp == true || next.beginsAnew(after: self))
        if isTermOver || renewal?.willRenew == false { return policy.lateRenewalTolerance }
        return isMonthly ? policy.longestPaymentLapse : policy.longestLapse
    }

    /// Returns whether it was bought: it began while a payment of a term, which had been refunded, would have run.
    func wasBought(after previous: Period, _ policy: Policy) -> Bool {
        previous.isMonthly && previous.isRefunded(before: self) && !begins(after: previous, policy)
    }

    /// Returns whether it was refunded when another period began.
    private func isRefunded(before next: Period) -> Bool {
        isRefunded && cancelledAt.map { $0 <= next.purchasedAt } ?? false
    }

    /// Returns whether it is the next payment of a term.
    func continuesTerm(of previous: Period) -> Bool {
        guard isMonthly, previous.isMonthly, productID == previous.productID, let payment, let before = previous.payment
        else { return false }
        return payment.number == before.number + 1 && payment.total == before.total
    }

    /// Returns whether it begins another term, or is paid at once, although payments of a term were left.
    private func beginsAnew(after previous: Period) -> Bool {
        guard let before = previous.payment, !before.isLast else { return false }
        return payment.map { $0.number <= before.number } ?? (details.sale?.value.plan == Sale.upfront)
    }

    /// Whether it was neither taken back nor replaced.
    var isLive: Bool { cancelledAt == nil && !isUpgraded }

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
