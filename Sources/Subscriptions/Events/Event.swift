/// The kind of change, as named in the feed.
package enum EventKind: String, Sendable, Hashable, CaseIterable {
    /// A subscription was seen for the first time.
    case subscriptionStarted = "subscription.started"
    /// A subscription that begins with a trial was seen for the first time.
    case trialStarted = "trial.started"
    /// A period follows a trial.
    case trialConverted = "trial.converted"
    /// The next period is booked.
    case subscriptionRenewed = "subscription.renewed"
    /// The next period is booked after a billing problem.
    case subscriptionRecovered = "subscription.recovered"
    /// The customer came back after a lapse.
    case subscriptionReactivated = "subscription.reactivated"
    /// The subscription is over; `detail.reason` says why.
    case subscriptionExpired = "subscription.expired"
    /// A trial ended without becoming a subscription.
    case trialExpired = "trial.expired"
    /// The customer turned renewal off.
    case autoRenewDisabled = "auto_renew.disabled"
    /// The customer turned renewal on.
    case autoRenewEnabled = "auto_renew.enabled"
    /// Billing failed, without grace.
    case billingRetryEntered = "billing.retry_entered"
    /// Billing failed, with grace.
    case billingGraceEntered = "billing.grace_entered"
    /// Grace ended unpaid.
    case billingGraceExpired = "billing.grace_expired"
    /// Another product took over.
    case productChanged = "product.changed"
    /// Another product will renew.
    case productChangeScheduled = "product.change_scheduled"
    /// The same product will renew after all.
    case productChangeWithdrawn = "product.change_withdrawn"
    /// The customer was asked to agree to a higher price.
    case priceIncreasePending = "price_increase.pending"
    /// The customer agreed, or was informed.
    case priceIncreaseAccepted = "price_increase.accepted"
    /// Apple refunded a period.
    case refundGranted = "refund.granted"
    /// Apple took a refund back.
    case refundReversed = "refund.reversed"
    /// Family sharing of a period ended.
    case familyRevoked = "family.revoked"
    /// A known period ends later than it did.
    case subscriptionExtended = "subscription.extended"
    /// A known period ends earlier than it did.
    case subscriptionShortened = "subscription.shortened"
    /// A one-time purchase was seen for the first time.
    case purchaseMade = "purchase.made"
    /// A one-time purchase was refunded.
    case purchaseRefunded = "purchase.refunded"
    /// A subscription or purchase got its first owner; emitted by the ledger.
    case ownershipAssigned = "ownership.assigned"
    /// A subscription or purchase changed its owner; emitted by the ledger.
    case ownershipTransferred = "ownership.transferred"
    /// What a customer may use changed by hand, or because another customer took something over; emitted by the ledger.
    case entitlementsChanged = "entitlements.changed"
}

/// A value in an event's detail.
package enum DetailValue: Sendable, Hashable {
    /// Text; instants are ISO 8601.
    case text(String)
    /// A count.
    case integer(Int64)
    /// Yes or no.
    case flag(Bool)
}

/// One change, as consumers see it.
package struct Event: Sendable, Hashable {
    /// What happened.
    package var kind: EventKind
    /// The product that the event is about.
    package var productID: ProductID
    /// The instant Apple gives, never later than `as_of`; for a switch `as_of` itself, with `detail.not_before`.
    package var occurredAt: Instant
    /// Further details, by snake_case key.
    package var detail: [String: DetailValue]

    /// Creates an event from its parts.
    package init(kind: EventKind, productID: ProductID, occurredAt: Instant, detail: [String: DetailValue] = [:]) {
        self.kind = kind
        self.productID = productID
        self.occurredAt = occurredAt
        self.detail = detail
    }
}
