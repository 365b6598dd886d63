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
            && revocationPercentage?.value == other.revocationPercentage?.value
    }
}
