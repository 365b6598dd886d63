/// A row of the decision table. The raw value is the value of `Ground.rule`.
package enum Rule: String, Sendable, CaseIterable {
    /// A live period runs.
    case runningPeriod = "running_period"
    /// The next period is already charged and starts later.
    case chargedAhead = "charged_ahead"
    /// The last period was refunded.
    case refunded
    /// The last period was shared with the family and revoked.
    case familyRevoked = "family_revoked"
    /// The last period was replaced and the replacing row has not arrived yet.
    case replacementAwaited = "replacement_awaited"
    /// Another subscription of the group took over.
    case replacedElsewhere = "replaced_elsewhere"
    /// Billing failed and the grace period runs.
    case grace
    /// Billing failed and Apple keeps trying.
    case billingRetry = "billing_retry"
    /// The period is just over and its renewal is expected.
    case renewalAwaited = "renewal_awaited"
    /// The period is over and renewal was off, without an intent.
    case renewalOff = "renewal_off"
    /// `expiration_intent` 1.
    case intentVoluntary = "intent_voluntary"
    /// `expiration_intent` 2.
    case intentBilling = "intent_billing"
    /// `expiration_intent` 3.
    case intentPriceIncrease = "intent_price_increase"
    /// `expiration_intent` 4.
    case intentProductUnavailable = "intent_product_unavailable"
    /// Any other `expiration_intent`.
    case intentOther = "intent_other"
    /// The period is over and Apple gives no reason.
    case nothingSaid = "nothing_said"
    /// The instant is before the first period.
    case notStarted = "not_started"

    var state: State {
        switch self {
        case .runningPeriod, .chargedAhead: .active
        case .refunded, .familyRevoked: .revoked
        case .replacementAwaited, .renewalAwaited: .awaitingRenewal
        case .grace: .gracePeriod
        case .billingRetry: .billingRetry
        case .replacedElsewhere, .renewalOff, .intentVoluntary, .intentBilling, .intentPriceIncrease,
            .intentProductUnavailable, .intentOther, .nothingSaid, .notStarted:
            .expired
        }
    }

    var reason: Reason? {
        switch self {
        case .runningPeriod, .chargedAhead, .grace, .billingRetry: nil
        case .refunded: .refund
        case .familyRevoked: .family
        case .replacementAwaited: .replacement
        case .renewalAwaited: .renewal
        case .renewalOff, .intentVoluntary: .voluntary
        case .intentBilling: .billingError
        case .intentPriceIncrease: .priceIncrease
        case .intentProductUnavailable: .productUnavailable
        case .intentOther, .replacedElsewhere: .other
        case .nothingSaid, .notStarted: .unknown
        }
    }
}

/// The decision of the table at an instant: the matching row, and the periods that decided.
struct Decision {
    let rule: Rule
    /// The period whose product and flags count.
    let subject: Int
    /// The period whose expiry counts.
    let head: Int
    let entitledUntil: Instant?
    let renewal: RenewalFacts?
}
