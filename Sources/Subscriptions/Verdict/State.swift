/// The state of a subscription at an instant.
package enum State: String, Sendable, Hashable, CaseIterable {
    /// A paid period runs.
    case active
    /// Billing failed; Apple grants access until the grace period ends.
    case gracePeriod = "grace_period"
    /// Billing failed and Apple keeps trying, without access.
    case billingRetry = "billing_retry"
    /// The period is over and its renewal or replacement is expected at any moment; access continues.
    case awaitingRenewal = "awaiting_renewal"
    /// The subscription is over.
    case expired
    /// Apple revoked it.
    case revoked

    /// Whether the customer has access; the same for every subscription in this state.
    package var isEntitled: Bool {
        switch self {
        case .active, .gracePeriod, .awaitingRenewal: true
        case .billingRetry, .expired, .revoked: false
        }
    }
}

/// The reason a subscription is expired, revoked or awaiting renewal.
package enum Reason: String, Sendable, Hashable, CaseIterable {
    /// Expired: the customer turned renewal off.
    case voluntary
    /// Expired: billing failed for good.
    case billingError = "billing_error"
    /// Expired: the customer did not agree to a higher price.
    case priceIncrease = "price_increase"
    /// Expired: the product was not for sale at renewal.
    case productUnavailable = "product_unavailable"
    /// Expired: Apple gives another reason, or another subscription of the group took over.
    case other
    /// Expired: Apple gives no reason.
    case unknown
    /// Revoked: refunded to the purchaser.
    case refund
    /// Revoked: the purchaser refunded, left the family or stopped sharing.
    case family
    /// Awaiting: the renewal is expected.
    case renewal
    /// Awaiting: a replacing row is expected.
    case replacement
}

/// A further property of a subscription, independent of its state.
package enum Flag: String, Sendable, Hashable, Comparable, CaseIterable {
    /// The period is a free trial.
    case trial
    /// The period has an introductory price.
    case intro
    /// The period was bought with a promotional offer.
    case promotionalOffer = "promotional_offer"
    /// The period was bought with an offer code.
    case offerCode = "offer_code"
    /// A family member shares the period.
    case familyShared = "family_shared"
    /// Another customer paid in another way: the period is a seat of a group, or its ownership is not known.
    case assigned
    /// The next period is already charged and starts later.
    case futureDated = "future_dated"
    /// The customer has not agreed to a higher price yet.
    case priceConsentPending = "price_consent_pending"
    /// Another product will renew.
    case changeScheduled = "change_scheduled"

    /// Orders flags by their raw value.
    package static func < (left: Flag, right: Flag) -> Bool { left.rawValue < right.rawValue }
}
