/// The stored form of a period: its values, and only the clocks that differ from the subscription's.
///
/// `asOf` nil means "the clock of the subscription"; a nil clock of `ending` means "the clock of the subscription's
/// renewal". An answer that merely confirms known facts therefore moves two clocks of the subscription and writes no
/// period. The form is exact: `SubscriptionFacts(…, records:…)` restores the facts from which `records` was made.
package struct PeriodRecord: Sendable, Hashable {
    /// The facts of a period that can have a clock of their own; the names are stored.
    package enum FactName: String, Sendable, Hashable, CaseIterable {
        /// `cancellation_date` and `cancellation_reason`.
        case revocation
        /// `is_upgraded`.
        case upgrade
        /// `original_purchase_date`.
        case originalPurchasedAt = "original_purchased_at"
        /// `is_trial_period`.
        case isTrial = "is_trial"
        /// `is_in_intro_offer_period`.
        case isIntro = "is_intro"
        /// `promotional_offer_id`.
        case promotionalOfferID = "promotional_offer_id"
        /// `offer_code_ref_name`.
        case offerCodeRefName = "offer_code_ref_name"
        /// `subscription_group_identifier`.
        case groupID = "group_id"
        /// `in_app_ownership_type`.
        case ownership
        /// `app_account_token`.
        case appAccountToken = "app_account_token"
        /// The subscription that took over.
        case replacedBy = "replaced_by"
        /// `price` and `currency`.
        case price
        /// `revocationPercentage`.
        case revocationPercentage = "revocation_percentage"
        /// Plan, payment, seats and the kind of a revocation.
        case sale
    }

    /// The stored form of a period's renewal information.
    package struct Ending: Sendable, Hashable {
        /// The renewal, with every field from its newest source.
        package var renewal: Renewal
        /// The instant of the newest row; nil for the clock of the subscription's renewal.
        package var asOf: Instant?
        /// The row's place in the answer.
        package var path: String
        /// Fields that the newest row does not state, with their sources.
        package var olderFields: [RenewalField: FactOrigin]
        /// The first answer that shows that Apple gave up charging: see `RenewalFacts`.
        package var gaveUpAt: Instant?

        /// Creates an ending from its parts.
        package init(
            renewal: Renewal, asOf: Instant?, path: String, olderFields: [RenewalField: FactOrigin] = [:],
            gaveUpAt: Instant? = nil
        ) {
            self.renewal = renewal
            self.asOf = asOf
            self.path = path
            self.olderFields = olderFields
            self.gaveUpAt = gaveUpAt
        }
    }

    /// The ledger's key; nil while the period is not stored.
    package var id: Int64?
    /// `web_order_line_item_id`.
    package var webOrderLineItemID: WebOrderLineItemID?
    /// Every delivery of the period seen so far.
    package var transactionIDs: Set<TransactionID>
    /// Product, start, end and quantity.
    package var terms: Terms
    /// Whether it was taken back.
    package var revocation: Revocation
    /// `is_upgraded`.
    package var isUpgraded: Bool
    /// `original_purchase_date`.
    package var originalPurchasedAt: Instant?
    /// `is_trial_period`; false, with an unspoken origin in `olderFacts`, if no row mentioned it.
    package var isTrial: Bool
    /// `is_in_intro_offer_period`; likewise.
    package var isIntro: Bool
    /// `promotional_offer_id`.
    package var promotionalOfferID: String?
    /// `offer_code_ref_name`.
    package var offerCodeRefName: String?
    /// `subscription_group_identifier`.
    package var groupID: SubscriptionGroupID?
    /// `in_app_ownership_type`.
    package var ownership: Ownership?
    /// `app_account_token`.
    package var appAccountToken: String?
    /// The subscription that took over.
    package var replacedBy: OriginalTransactionID?
    /// `price` and `currency`.
    package var price: Price?
    /// `revocationPercentage`, in thousandths of a percent.
    package var revocationPercentage: Int?
    /// What a signed transaction states of its sale.
    package var sale: Sale?
    /// The instant of the newest row about the period; nil for the subscription's `asOf`.
    package var asOf: Instant?
    /// The place of that row in its answer.
    package var path: String
    /// Facts whose source is not the newest row.
    package var olderFacts: [FactName: FactOrigin]
    /// Apple's information about the renewal that follows the period.
    package var ending: Ending?

    /// Creates a record from its columns.
    package init(
        id: Int64? = nil, webOrderLineItemID: WebOrderLineItemID?, transactionIDs: Set<TransactionID>, terms: Terms,
        revocation: Revocation, isUpgraded: Bool = false, originalPurchasedAt: Instant? = nil, isTrial: Bool = false,
        isIntro: Bool = false,
        promotionalOfferID: String? = nil, offerCodeRefName: String? = nil, groupID: SubscriptionGroupID? = nil,
        ownership: Ownership? = nil, appAccountToken: String? = nil, replacedBy: OriginalTransactionID? = nil,
        price: Price? = nil, revocationPercentage: Int? = nil, sale: Sale? = nil, asOf: Instant?, path: String,
        olderFacts: [FactName: FactOrigin] = [:], ending: Ending? = nil
    ) {
        self.id = id
        self.webOrderLineItemID = webOrderLineItemID
        self.transactionIDs = transactionIDs
        self.terms = terms
        self.revocation = revocation
        self.isUpgraded = isUpgraded
        self.originalPurchasedAt = originalPurchasedAt
        self.isTrial = isTrial
        self.isIntro = isIntro
        self.promotionalOfferID = promotionalOfferID
        self.offerCodeRefName = offerCodeRefName
        self.groupID = groupID
        self.ownership = ownership
        self.appAccountToken = appAccountToken
        self.replacedBy = replacedBy
        self.price = price
        self.revocationPercentage = revocationPercentage
        self.sale = sale
        self.asOf = asOf
        self.path = path
        self.olderFacts = olderFacts
        self.ending = ending
    }
}
