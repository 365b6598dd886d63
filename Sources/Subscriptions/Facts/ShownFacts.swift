extension Fact<Revocation> {
    /// Returns whether it is the revocation of a date, give or take a second, because one channel may give whole ones.
    func isDated(_ date: Instant?) -> Bool {
        guard let date, let cancelledAt = value.cancelledAt else { return false }
        return cancelledAt - .seconds(1) <= date && date <= cancelledAt + .seconds(1)
    }

    /// Returns whether a text states this revocation, by date, and by the reason where the same channel gave it.
    func shows(_ row: TransactionRow) -> Bool {
        guard isDated(row.cancelledAt) else { return false }
        guard origin.isOfServerAPI, let said = row.cancellationReason, let reason = value.reason else { return true }
        return said == reason
    }

    /// Returns whether an answer states another share of the price than a text: then the next one decides, as of all facts.
    /// verifyReceipt states no share, so beside it nothing contradicts a text.
    func contradicts(_ share: Int?, by known: Fact<Int>?) -> Bool {
        guard let share, let known, origin.isOfServerAPI, known.origin.isOfServerAPI else { return false }
        return known.value != share
    }

    /// Returns the share of the price that was given back once a text states one. It counts for the refund of its date alone,
    /// and an answer that states the same stays its source.
    func share(_ known: Fact<Int>?, with said: Fact<Int>?) -> Fact<Int>? {
        if contradicts(said?.value, by: known) { return known }
        guard var shown = known, let said, shown.value == said.value, shown.origin.isOfServerAPI else {
            return newest(known, said)
        }
        shown.origin.asOf = max(shown.asOf, said.asOf)
        return shown
    }

    /// Returns the share of the price that counts beside this revocation: a share goes with the date of its refund.
    func share(_ share: Fact<Int>?, knownBeside before: Fact, _ shareBefore: Fact<Int>?) -> Fact<Int>? {
        guard before.value.cancelledAt != nil, share == shareBefore else { return share }
        return isDated(before.value.cancelledAt) ? share : nil
    }
}

extension SubscriptionFacts {
    /// Returns the facts with the details of a signed transaction, each by its own clock; nil where no period is the one that
    /// it names. What part of a refund was paid back means nothing until an answer shows the refund.
    package func addingDetails(of row: TransactionRow) -> SubscriptionFacts? {
        guard let index = index(of: row) else { return nil }
        var periods = periods
        let (known, said) = (periods[index], PeriodDetails(row: row))
        periods[index].details.price = newest(known.details.price, said.price)
        if known.isTakenBack(as: row) {
            periods[index].details.revocationPercentage = known.revocation.share(
                known.details.revocationPercentage, with: said.revocationPercentage)
        }
        return with(periods)
    }

    fileprivate func index(of row: TransactionRow) -> Int? {
        periods.firstIndex {
            $0.transactionIDs.contains(row.transactionID)
                || row.webOrderLineItemID != nil && $0.webOrderLineItemID == row.webOrderLineItemID
        }
    }
}

extension SubscriptionState {
    /// Returns whether Apple's answers show what signed texts state: the transaction, how far it was taken back, and the renewal
    /// after it. What an answer takes back shows although it does not count yet. What a channel never states is no difference.
    package func shows(_ slice: SubscriptionEvidence) -> Bool {
        for row in slice.transactions {
            guard let index = facts.index(of: row) else { return false }
            let period = facts.periods[index]
            guard period.isUpgraded == row.isUpgraded, ends(period, at: row.expiresAt), period.isSold(as: row) else {
                return false
            }
            if let seats = row.sale?.seats, seats.revoked > period.details.sale?.value.seats?.revoked ?? 0 {
                return false
            }
            if !row.isUpgraded, isTakenBack(period) != (row.cancelledAt != nil) { return false }
            if row.cancelledAt != nil, !period.showsRevocation(of: row) { return false }
            // Renewal information is about the last period alone, and says nothing more about one that was taken back.
            if row.cancelledAt != nil || index != Period.indexOfLast(in: facts.periods) { return true }
        }
        guard let said = slice.renewals.first else { return true }
        let text = RenewalFacts(Fact(said.renewal, asOf: said.asOf, path: said.path))
        let last = Period.indexOfLast(in: facts.periods).map { facts.periods[$0] }
        // What counts only once the period is over is compared only then.
        return facts.currentRenewal?.value.shows((last.map(text.after) ?? text).said.value) ?? false
    }

    private func isTakenBack(_ period: Period) -> Bool {
        period.cancelledAt != nil
            && !retractions.contains { $0.what == .revocation && period.transactionIDs.contains($0.transactionID) }
    }

    private func ends(_ period: Period, at end: Instant?) -> Bool {
        guard let end, end != period.expiresAt else { return true }
        return retractions.contains {
            $0.what == .end && $0.end == end && period.transactionIDs.contains($0.transactionID)
        }
    }
}

extension Period {
    /// Returns whether it was taken back as a text says. A replaced period may be so without a date, and be refunded later.
    fileprivate func isTakenBack(as row: TransactionRow) -> Bool {
        revocation.isDated(row.cancelledAt) || cancelledAt == nil && isUpgraded && row.isUpgraded
    }

    /// Returns whether answers show the revocation that a text states: its date, its reason, its kind and its share.
    fileprivate func showsRevocation(of row: TransactionRow) -> Bool {
        if cancelledAt == nil { return isUpgraded && row.isUpgraded }
        let (said, known) = (row.sale?.revocationType, details.sale?.value.revocationType)
        let isKind = !revocation.origin.isOfServerAPI || said == nil || known == nil || said == known
        return isKind && revocation.shows(row)
            && !revocation.contradicts(row.revocationPercentage, by: details.revocationPercentage)
    }

    /// Returns whether it is the payment of a term that a text states, where answers say of which.
    fileprivate func isSold(as row: TransactionRow) -> Bool {
        guard terms.origin.isOfServerAPI, let said = row.sale?.payment, let payment else { return true }
        return (said.number, said.total, said.termEndsAt) == (payment.number, payment.total, payment.termEndsAt)
    }
}

extension Renewal {
    /// Returns whether what is kept of a renewal shows what a signed text states; what either leaves unsaid is no difference.
    fileprivate func shows(_ said: Renewal) -> Bool {
        func agree<Value: Equatable>(_ left: Value?, _ right: Value?) -> Bool {
            left == nil || right == nil || left == right
        }
        return agree(term, said.term) && agree(willRenew, said.willRenew)
            && agree(renewsToProductID, said.renewsToProductID)
            && (said.inBillingRetry != true || inBillingRetry == true)
            && (said.expirationIntent == nil || expirationIntent != nil)
            && (said.graceExpiresAt == nil || said.graceExpiresAt == graceExpiresAt)
            && (said.priceConsentStatus ?? said.priceIncreaseStatus == nil
                || awaitsPriceConsent == said.awaitsPriceConsent)
    }
}

extension PurchaseFacts {
    /// Returns the facts with the details of a signed transaction, likewise.
    package func addingDetails(of row: TransactionRow) -> PurchaseFacts {
        let said = PurchaseFacts(row, key: key, asOf: asOf)
        var facts = self
        facts.price = newest(price, said.price)
        if revocation.isDated(row.cancelledAt) {
            facts.revocationPercentage = revocation.share(revocationPercentage, with: said.revocationPercentage)
        }
        return facts
    }
}

extension PurchaseState {
    /// Returns whether Apple's answers show what a signed text states, likewise, but for the share of a refund.
    package func shows(_ row: TransactionRow) -> Bool {
        guard revokedAt != nil, refundRetractedAt == nil else { return row.cancelledAt == nil }
        return facts.revocation.shows(row)
    }

    /// Returns whether they show the share of a refund that it states: the Server API alone can.
    package func showsShare(of row: TransactionRow) -> Bool {
        row.revocationPercentage.map { $0 == facts.refundShown?.value } ?? true
    }
}
