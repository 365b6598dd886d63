/// The kind of an event in a customer's life, in the store's own terms.
package enum LifeEventKind: String, Codable, Sendable, CaseIterable {
    /// The first paid period of a subscription.
    case purchased
    /// The first period, free.
    case trialStarted = "trial_started"
    /// The first period of a subscription, at the price of an offer.
    case offerStarted = "offer_started"
    /// The store charged the next period.
    case renewed
    /// The first charge after a free trial.
    case converted
    /// The subscription ended; the expiration intent gives the reason.
    case lapsed
    /// Apple refunded one period.
    case refunded
    /// Apple reversed a refund.
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
    /// A product of the same level and another length was selected for the next renewal.
    case crossgradeScheduled = "crossgrade_scheduled"
    /// Another product was selected for the next renewal.
    case downgradeScheduled = "downgrade_scheduled"
    /// The selection of another product was cancelled.
    case changeWithdrawn = "change_withdrawn"
    /// The other way to pay was selected for the next renewal.
    case planSwitchScheduled = "plan_switch_scheduled"
    /// A group bought more seats for the running period.
    case seatsAdded = "seats_added"
    /// A group renews with fewer seats.
    case seatsReduced = "seats_reduced"
    /// Apple refunded some seats of a transaction.
    case seatsRefunded = "seats_refunded"
    /// The next period was charged for another product.
    case changedAtRenewal = "changed_at_renewal"
    /// The customer redeemed an offer for the next renewals.
    case offerRedeemed = "offer_redeemed"
    /// The price rises, and without consent the subscription ends.
    case priceIncreasePending = "price_increase_pending"
    /// The customer agreed to the higher price.
    case priceIncreaseAccepted = "price_increase_accepted"
    /// A lapsed customer bought again.
    case resubscribed
    /// A family member lost a shared subscription.
    case revoked
    /// The end of the same period moved later.
    case extended
    /// The account is deleted; Apple answers 21010 from now on.
    case accountDeleted = "account_deleted"
}

struct LifeEvent: Sendable {
    let at: StoreTime
    let kind: LifeEventKind
    /// The period concerned, if any.
    let ordinal: Int?
    let expirationIntent: Int?
}
