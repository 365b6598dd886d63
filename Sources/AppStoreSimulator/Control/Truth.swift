/// Everything the store knows about one customer at one instant, in the store's own words. Instants are milliseconds
/// since 1970.
package struct CustomerTruth: Codable, Sendable {
    /// The name, like `c000017`.
    package var customer: String
    /// The bundle id of the app.
    package var app: String
    /// `Production` or `Sandbox`.
    package var environment: StoreEnvironment
    /// The instant this was true.
    package var now: Int64
    /// Apple answers 21010 from now on.
    package var accountDeleted: Bool
    /// A second customer of the app on the same Apple account.
    package var secondCustomer: String?
    /// What the app gives Apple with purchases.
    package var appAccountToken: String?
    /// The devices send receipts of iOS 6, which show the newest period and their own, and no others.
    package var hasLegacyReceipts: Bool
    /// All that have begun; usually one.
    package var subscriptions: [SubscriptionTruth]
    /// One-time purchases.
    package var purchases: [PurchaseTruth]

    enum CodingKeys: String, CodingKey {
        case customer, app, environment, subscriptions, purchases
        case now = "now_ms"
        case accountDeleted = "account_deleted"
        case secondCustomer = "second_customer"
        case appAccountToken = "app_account_token"
        case hasLegacyReceipts = "legacy_receipts"
    }
}

/// Whether Apple's data entitle somebody, and why.
package enum AccessTruth: String, Codable, Sendable, CaseIterable {
    /// A running period that was not taken back.
    case paid
    /// A failed charge, and the grace period runs.
    case grace
    /// Nothing.
    case none
}

/// One subscription.
package struct SubscriptionTruth: Codable, Sendable {
    /// Apple's id of the chain.
    package var originalTransactionID: String
    /// The current product.
    package var product: String
    /// Apple's subscription group.
    package var group: String
    /// Whether it entitles at this instant.
    package var access: AccessTruth
    /// The product of the next renewal.
    package var autoRenewProduct: String
    /// Renewal is on.
    package var autoRenewStatus: Bool
    /// Apple's 1 to 5 once it ended or is in retry.
    package var expirationIntent: Int?
    /// Charges are tried again.
    package var inBillingRetry: Bool
    /// The end of grace, also when it is over.
    package var graceUntil: Int64?
    /// The customer has been asked for consent to a higher price and has not answered.
    package var priceConsentPending: Bool
    /// `PURCHASED` or `FAMILY_SHARED`.
    package var ownership: String
    /// In the order they were booked.
    package var periods: [PeriodTruth]
    /// What happened, in order.
    package var log: [HappeningTruth]

    enum CodingKeys: String, CodingKey {
        case product, group, access, ownership, periods, log
        case originalTransactionID = "original_transaction_id"
        case autoRenewProduct = "auto_renew_product"
        case autoRenewStatus = "auto_renew_status"
        case expirationIntent = "expiration_intent"
        case inBillingRetry = "in_billing_retry"
        case graceUntil = "grace_until_ms"
        case priceConsentPending = "price_consent_pending"
    }
}

/// One period of a subscription.
package struct PeriodTruth: Codable, Sendable {
    /// The server's id of the row.
    package var transactionID: String
    /// Absent for family members.
    package var webOrderLineItemID: String?
    /// The product bought.
    package var product: String
    /// When the store charged it and first showed it.
    package var booked: Int64
    /// Its start.
    package var purchase: Int64
    /// Its end.
    package var expires: Int64
    /// It was free.
    package var isTrial: Bool
    /// Why it cost less.
    package var offer: PeriodOffer?
    /// When it was refunded, revoked or replaced.
    package var cancelled: Int64?
    /// It was replaced by a higher level.
    package var upgraded: Bool

    enum CodingKeys: String, CodingKey {
        case product, upgraded, offer
        case transactionID = "transaction_id"
        case webOrderLineItemID = "web_order_line_item_id"
        case booked = "booked_ms"
        case purchase = "purchase_ms"
        case expires = "expires_ms"
        case isTrial = "is_trial"
        case cancelled = "cancelled_ms"
    }
}

/// One happening of a subscription.
package struct HappeningTruth: Codable, Sendable {
    /// When the store first showed it, as RFC 3339 text in whole seconds, for people.
    package var at: String
    /// When, in milliseconds since 1970.
    package var atMilliseconds: Int64
    /// What.
    package var kind: HappeningKind
    /// The period it is about.
    package var transactionID: String?
    /// For `lapsed`.
    package var expirationIntent: Int?

    enum CodingKeys: String, CodingKey {
        case at, kind
        case atMilliseconds = "at_ms"
        case transactionID = "transaction_id"
        case expirationIntent = "expiration_intent"
    }
}

/// A one-time purchase.
package struct PurchaseTruth: Codable, Sendable {
    /// Apple's id.
    package var transactionID: String
    /// The product bought.
    package var product: String
    /// When.
    package var purchase: Int64
    /// When Apple gave the money back.
    package var refunded: Int64?
    /// Apple's answers mention it; coins that are used up are gone.
    package var isListed: Bool

    enum CodingKeys: String, CodingKey {
        case product
        case transactionID = "transaction_id"
        case purchase = "purchase_ms"
        case refunded = "refunded_ms"
        case isListed = "listed"
    }
}
