/// The probability of each event in one paid period of a drawn customer, 0 to 1. A period has at most one event.
package struct PeriodChances: Codable, Sendable {
    /// Turns renewal off for good.
    package var cancels = 0.06
    /// Turns renewal off and on again.
    package var wavers = 0.03
    /// Is refunded for the running period.
    package var refunds = 0.03
    /// Is refunded for the period before.
    package var olderRefunds = 0.012
    /// Is refunded; the refund is then reversed.
    package var refundReversals = 0.015
    /// The card fails.
    package var billingFailures = 0.07
    /// The share of failing cards that work again in time.
    package var recoveries = 0.7
    /// Goes to the higher level.
    package var upgrades = 0.025
    /// Changes to a lower level, or to another length, at the next renewal.
    package var downgrades = 0.02
    /// Changes to another product of the same level.
    package var crossgrades = 0.02
    /// Gets the period extended.
    package var extensions = 0.015
    /// Is asked for consent to a higher price.
    package var priceIncreases = 0.03
    /// The share of asked customers who agree; the others do not answer and lapse.
    package var priceConsents = 0.6
    /// The product is not for sale at the next renewal.
    package var withdrawals = 0.01
    /// The subscription ends for a reason Apple does not give.
    package var unexplainedEnds = 0.005
    /// Takes a promotional offer or a code for the next renewals.
    package var redeemedOffers = 0.02
    /// A customer with a yearly term chooses the other plan for the time after it.
    package var planSwitches = 0.04
    /// A group buys more seats.
    package var seatAdditions = 0.08
    /// A group renews with fewer seats.
    package var seatReductions = 0.05
    /// A group is refunded for some seats.
    package var seatRefunds = 0.05
    /// The family share, or the seat of a member, is revoked.
    package var revocations = 0.1
    /// Deletes the account.
    package var accountDeletions = 0.004
    /// The share of lapsed customers who come back, some of them with an offer.
    package var comebacks = 0.75

    /// Creates chances with the defaults.
    package init() {}
}
