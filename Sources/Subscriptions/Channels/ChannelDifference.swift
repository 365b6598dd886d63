/// A fact about one receipt that verifyReceipt and the Server API state differently.
package struct ChannelDifference: Sendable, Hashable {
    /// A fact that both channels state; the names are stored.
    package enum Fact: String, Sendable, CaseIterable {
        /// Whether a billing period exists.
        case period
        /// Whether a one-time purchase exists.
        case purchase
        case productID = "product_id"
        case purchasedAt = "purchased_at"
        case expiresAt = "expires_at"
        case quantity
        case cancelledAt = "cancelled_at"
        case isUpgraded = "is_upgraded"
        case isTrial = "is_trial"
        case isIntro = "is_intro"
        case promotionalOfferID = "promotional_offer_id"
        case offerCodeRefName = "offer_code_ref_name"
        case groupID = "group_id"
        case ownership
        case appAccountToken = "app_account_token"
        case willRenew = "will_renew"
        case renewsToProductID = "renews_to_product_id"
        case expirationIntent = "expiration_intent"
        case inBillingRetry = "in_billing_retry"
        case graceExpiresAt = "grace_expires_at"
        case priceIncreaseStatus = "price_increase_status"
    }

    /// Why a difference is to be expected; the names are stored.
    package enum Explanation: String, Sendable, CaseIterable {
        /// A receipt loses a consumable once the app has finished it; the Server API keeps it.
        case finishedConsumable = "finished_consumable"
        /// A device that restored a purchase may show the moment of the restore as its date.
        case restored
        /// A receipt of the form of iOS 6 is about its newest period only.
        case oldReceipt = "old_receipt"
    }

    /// The subscription, or the one-time purchase by its original transaction.
    package let originalTransactionID: OriginalTransactionID
    /// The transaction of the period or purchase; nil for the renewal.
    package let transactionID: TransactionID?
    /// The fact.
    package let fact: Fact
    /// What verifyReceipt states; nil where it states nothing.
    package let verifyReceipt: String?
    /// What the Server API states; nil where it states nothing.
    package let serverAPI: String?
    /// Why the difference is to be expected; nil where it is not.
    package let explanation: Explanation?

    /// Creates it from its parts.
    package init(
        originalTransactionID: OriginalTransactionID, transactionID: TransactionID?, fact: Fact,
        verifyReceipt: String?, serverAPI: String?, explanation: Explanation? = nil
    ) {
        (self.originalTransactionID, self.transactionID) = (originalTransactionID, transactionID)
        (self.fact, self.explanation) = (fact, explanation)
        (self.verifyReceipt, self.serverAPI) = (verifyReceipt, serverAPI)
    }
}
