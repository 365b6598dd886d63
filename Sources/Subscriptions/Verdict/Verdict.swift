/// The state of a subscription at one instant, and why.
package struct Verdict: Sendable, Hashable {
    package var state: State
    /// The reason, for expired, revoked and awaiting renewal.
    package var reason: Reason?
    /// The product of the running period, otherwise of the last one.
    package var productID: ProductID
    /// Apple's expiry of the last period charged; of the refunded period if revoked.
    package var expiresAt: Instant
    /// The end of access if nothing more is learnt; nil without access.
    package var entitledUntil: Instant?
    /// The flags of the running period, otherwise of the last one; sorted.
    package var flags: [Flag]
    /// The fields that decided, in the order they were examined.
    package var because: [Ground]

    /// Whether the customer has access.
    package var entitled: Bool { state.isEntitled }
}

/// One field that led to a verdict.
package struct Ground: Sendable, Hashable {
    /// The row of the decision table, such as `running_period`; docs/lifecycle.md lists them.
    package var rule: String
    /// The field, such as `latest_receipt_info[0].expires_date_ms`; empty if the answer contains none.
    package var path: String
    /// The field's value as Apple wrote it; empty if the answer contains none.
    package var value: String
}

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
    /// Expired: another reason, or another subscription of the group took over. Revoked: in words that are not known.
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
    /// The last period was taken back in words that are not known.
    case revokedOtherwise = "revoked_otherwise"
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
        case .refunded, .familyRevoked, .revokedOtherwise: .revoked
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
        case .intentOther, .replacedElsewhere, .revokedOtherwise: .other
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

/// The rules for interpreting evidence.
package enum Rules {
    /// The edition of the rules. It is raised whenever the same evidence gets a new meaning, so that every subscription
    /// is reconciled again at its next check.
    package static let edition = 9
}

/// The operator's tolerances. Everything else comes from Apple.
package struct Policy: Sendable, Hashable {
    /// How long after an expiry an expected renewal may still be booked without ending access.
    package var leeway: Delay
    /// The outage allowance: how long access continues while Apple could not be asked.
    package var outageAllowance: Delay
    /// The longest gap between two periods that still counts as a renewal.
    package var lateRenewalTolerance: Delay
    /// The window over which checks shortly before ends are spread, six times as long at the turn of a month.
    package var preCheckSpread = Delay.minutes(10)
    /// The divisor of every delay of the schedule; 1 in production use.
    package var speedup: Int
    /// The factor by which the interval between two refund checks grows; 1 unless another source reports refunds.
    package var sweepStretch: Int

    /// Creates a policy from its parts; a speedup or a stretch below 1 counts as 1.
    package init(
        leeway: Delay, outageAllowance: Delay, lateRenewalTolerance: Delay, speedup: Int = 1, sweepStretch: Int = 1
    ) {
        self.leeway = leeway
        self.outageAllowance = outageAllowance
        self.lateRenewalTolerance = lateRenewalTolerance
        self.speedup = max(1, speedup)
        self.sweepStretch = max(1, sweepStretch)
    }

    /// Returns the defaults, divided by the speedup: leeway 2 h (sandbox 5 min), outage allowance 30 days, late
    /// renewals within 1 h (sandbox 10 min).
    package static func standard(for environment: StoreEnvironment, speedup: Int = 1) -> Policy {
        let divisor = max(1, speedup)
        let (leeway, tolerance): (Delay, Delay) =
            switch environment {
            case .production: (.hours(2), .hours(1))
            case .sandbox: (.minutes(5), .minutes(10))
            }
        return Policy(
            leeway: leeway.divided(by: divisor), outageAllowance: Delay.days(30).divided(by: divisor),
            lateRenewalTolerance: tolerance.divided(by: divisor), speedup: divisor)
    }

    /// Returns the same policy with another leeway; `explain` uses none.
    package func with(leeway: Delay) -> Policy {
        var copy = self
        copy.leeway = leeway
        return copy
    }
}
