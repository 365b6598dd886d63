/// A row of the decision table. The raw value is what `Ground.rule` says.
enum Rule: String, CaseIterable {
    case runningPeriod = "running_period"
    case chargedAhead = "charged_ahead"
    case refunded
    case familyRevoked = "family_revoked"
    case replacementAwaited = "replacement_awaited"
    case replacedElsewhere = "replaced_elsewhere"
    case grace
    case billingRetry = "billing_retry"
    case renewalAwaited = "renewal_awaited"
    case renewalOff = "renewal_off"
    case intentVoluntary = "intent_voluntary"
    case intentBilling = "intent_billing"
    case intentPriceIncrease = "intent_price_increase"
    case intentProductUnavailable = "intent_product_unavailable"
    case intentOther = "intent_other"
    case nothingSaid = "nothing_said"
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

/// What the table decided at an instant: which row of it, and which periods it looked at.
struct Decision {
    let rule: Rule
    /// The period whose product and flags count.
    let subject: Int
    /// The period whose expiry counts.
    let head: Int
    let entitledUntil: Instant?
    let renewal: Fact<Renewal>?
}
