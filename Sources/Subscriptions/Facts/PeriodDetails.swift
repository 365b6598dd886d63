/// The optional details of a period, besides its terms. A row without a detail does not remove it.
package struct PeriodDetails: Hashable, Sendable {
    /// `original_purchase_date`.
    package var originalPurchasedAt: Fact<Instant>?
    /// `is_trial_period`.
    package var isTrial: Fact<Bool>?
    /// `is_in_intro_offer_period`.
    package var isIntro: Fact<Bool>?
    /// `promotional_offer_id`.
    package var promotionalOfferID: Fact<String>?
    /// `offer_code_ref_name`.
    package var offerCodeRefName: Fact<String>?
    /// `subscription_group_identifier`.
    package var groupID: Fact<SubscriptionGroupID>?
    /// `in_app_ownership_type`.
    package var ownership: Fact<Ownership>?
    /// `app_account_token`.
    package var appAccountToken: Fact<String>?
    /// `price` and `currency` of a signed transaction.
    package var price: Fact<Price>?
    /// `revocationPercentage` of a signed transaction, in thousandths of a percent.
    package var revocationPercentage: Fact<Int>?
    /// What a signed transaction states of its sale.
    package var sale: Fact<Sale>?
    /// The subscription of the same group that took over, if this period was replaced.
    package var replacedBy: Fact<OriginalTransactionID>?

    /// Creates empty details.
    package init() {}

    /// Creates the details that one row states.
    package init(row: TransactionRow, replacedBy: OriginalTransactionID? = nil) {
        let origin = FactOrigin(asOf: row.asOf, path: row.path)
        func said<Value>(_ value: Value?) -> Fact<Value>? { value.map { Fact($0, origin: origin) } }
        originalPurchasedAt = said(row.originalPurchasedAt)
        isTrial = said(row.isTrialPeriod)
        isIntro = said(row.isInIntroOfferPeriod)
        promotionalOfferID = said(row.promotionalOfferID)
        offerCodeRefName = said(row.offerCodeRefName)
        groupID = said(row.groupID)
        ownership = said(row.ownership)
        appAccountToken = said(row.appAccountToken)
        price = said(row.price)
        revocationPercentage = said(row.revocationPercentage)
        sale = said(row.sale)
        self.replacedBy = row.isUpgraded ? said(replacedBy) : nil
    }

    /// Merges both and keeps the newer of each detail.
    package func merging(_ other: PeriodDetails) -> PeriodDetails {
        var merged = PeriodDetails()
        merged.originalPurchasedAt = newest(originalPurchasedAt, other.originalPurchasedAt)
        merged.isTrial = newest(isTrial, other.isTrial)
        merged.isIntro = newest(isIntro, other.isIntro)
        merged.promotionalOfferID = newest(promotionalOfferID, other.promotionalOfferID)
        merged.offerCodeRefName = newest(offerCodeRefName, other.offerCodeRefName)
        merged.groupID = newest(groupID, other.groupID)
        merged.ownership = newest(ownership, other.ownership)
        merged.appAccountToken = newest(appAccountToken, other.appAccountToken)
        merged.price = newest(price, other.price)
        merged.revocationPercentage = newest(revocationPercentage, other.revocationPercentage)
        merged.sale = newest(sale, other.sale)
        merged.replacedBy = newest(replacedBy, other.replacedBy)
        return merged
    }

    /// Returns whether both state the same, regardless of source and instant; an offer denied equals an offer not
    /// mentioned.
    package func sameMeaning(as other: PeriodDetails) -> Bool {
        originalPurchasedAt?.value == other.originalPurchasedAt?.value
            && isTrial?.value ?? false == other.isTrial?.value ?? false
            && isIntro?.value ?? false == other.isIntro?.value ?? false && groupID?.value == other.groupID?.value
            && promotionalOfferID?.value == other.promotionalOfferID?.value
            && offerCodeRefName?.value == other.offerCodeRefName?.value
            && ownership?.value == other.ownership?.value && appAccountToken?.value == other.appAccountToken?.value
            && replacedBy?.value == other.replacedBy?.value && price?.value == other.price?.value
            && revocationPercentage?.value == other.revocationPercentage?.value && sale?.value == other.sale?.value
    }
}

extension SubscriptionFacts {
    /// Returns the facts with the details of a signed transaction, each by its own clock; nil where no period is the one that
    /// it names. What part of a refund was paid back means nothing until an answer shows the refund.
    package func addingDetails(of row: TransactionRow) -> SubscriptionFacts? {
        guard let index = index(of: row) else { return nil }
        var periods = periods
        let said = PeriodDetails(row: row)
        periods[index].details.price = newest(periods[index].details.price, said.price)
        if periods[index].mayBeTakenBack(at: row.cancelledAt) {
            periods[index].details.revocationPercentage = newest(
                periods[index].details.revocationPercentage, said.revocationPercentage)
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
    /// after it. What an answer takes back shows although it does not count yet.
    package func shows(_ slice: SubscriptionEvidence) -> Bool {
        for row in slice.transactions {
            guard let index = facts.index(of: row) else { return false }
            let period = facts.periods[index]
            if period.isUpgraded != row.isUpgraded || row.expiresAt.map({ period.expiresAt < $0 }) ?? false {
                return false
            }
            if let seats = row.sale?.seats, seats.revoked > period.details.sale?.value.seats?.revoked ?? 0 {
                return false
            }
            if !row.isUpgraded, isTakenBack(period) != (row.cancelledAt != nil) { return false }
            if row.isUpgraded, !period.mayBeTakenBack(at: row.cancelledAt) { return false }
            // Renewal information is about the last period alone, and says nothing more about one that was taken back.
            if row.cancelledAt != nil || index != Period.indexOfLast(in: facts.periods) { return true }
        }
        guard let said = slice.renewals.first else { return true }
        let text = RenewalFacts(Fact(said.renewal, asOf: said.asOf, path: said.path))
        let end = Period.indexOfLast(in: facts.periods).map { facts.periods[$0].expiresAt }
        // What counts only once the period is over is compared only then.
        return facts.currentRenewal?.value.shows((end.map(text.after) ?? text).said.value) ?? false
    }

    private func isTakenBack(_ period: Period) -> Bool {
        period.cancelledAt != nil
            && !retractions.contains { $0.what == .revocation && period.transactionIDs.contains($0.transactionID) }
    }
}

extension Period {
    /// Returns whether a date is that of its own revocation, if both are known. A replaced period may be refunded later.
    fileprivate func mayBeTakenBack(at date: Instant?) -> Bool {
        guard let date, let cancelledAt else { return true }
        return cancelledAt - .minutes(1) <= date && date <= cancelledAt + .minutes(1)
    }
}

extension Renewal {
    /// Returns whether this is what a text states. What one of the channels leaves unsaid is no difference.
    fileprivate func shows(_ said: Renewal) -> Bool {
        func agree<Value: Equatable>(_ left: Value?, _ right: Value?) -> Bool {
            left == nil || right == nil || left == right
        }
        return agree(term, said.term) && agree(willRenew, said.willRenew)
            && agree(renewsToProductID, said.renewsToProductID)
            && (said.inBillingRetry != true || inBillingRetry == true)
            && (said.expirationIntent == nil || expirationIntent != nil)
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
        facts.revocationPercentage = newest(revocationPercentage, said.revocationPercentage)
        return facts
    }
}
