/// What happened in a customer's life, in the store's own words.
package enum HappeningKind: String, Codable, Sendable, CaseIterable {
    /// First paid period of a subscription.
    case purchased
    /// First period, free.
    case trialStarted = "trial_started"
    /// First period of a subscription, at an offer's price.
    case offerStarted = "offer_started"
    /// The next period was charged.
    case renewed
    /// The first charge after a free trial.
    case converted
    /// The subscription ended; the expiration intent says why.
    case lapsed
    /// Apple gave the money of one period back.
    case refunded
    /// A refund was taken back.
    case refundReversed = "refund_reversed"
    /// The customer turned renewal off.
    case renewalDisabled = "renewal_disabled"
    /// The customer turned renewal on again.
    case renewalEnabled = "renewal_enabled"
    /// A charge failed and billing retry began.
    case billingFailed = "billing_failed"
    /// Billing retry began with a grace period.
    case graceStarted = "grace_started"
    /// The grace period passed without a charge.
    case graceEnded = "grace_ended"
    /// A charge succeeded after a failure.
    case recovered
    /// A higher level began at once.
    case upgraded
    /// Another product of the same level and length began at once.
    case crossgraded
    /// A product of the same level and another length was chosen for the next renewal.
    case crossgradeScheduled = "crossgrade_scheduled"
    /// Another product was chosen for the next renewal.
    case downgradeScheduled = "downgrade_scheduled"
    /// The choice of another product was taken back.
    case changeWithdrawn = "change_withdrawn"
    /// The next period was charged with another product.
    case changedAtRenewal = "changed_at_renewal"
    /// An offer was taken for the next renewals.
    case offerRedeemed = "offer_redeemed"
    /// The price goes up, and without consent the subscription ends.
    case priceIncreasePending = "price_increase_pending"
    /// The customer agreed to the higher price.
    case priceIncreaseAccepted = "price_increase_accepted"
    /// A lapsed customer bought again.
    case resubscribed
    /// A family member lost a shared subscription.
    case revoked
    /// The same period ends later.
    case extended
    /// The account is gone; Apple answers 21010 from here.
    case accountDeleted = "account_deleted"
}

struct Happening: Sendable {
    let at: Moment
    let kind: HappeningKind
    /// The period it is about, when there is one.
    let ordinal: Int?
    let expirationIntent: Int?
}
