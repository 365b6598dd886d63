/// How likely each thing is in one paid period of a drawn customer, 0 to 1. One thing happens in a period at most.
public struct PeriodChances: Codable, Sendable {
    /// Turns renewal off for good.
    public var cancels = 0.06
    /// Turns renewal off and on again.
    public var wavers = 0.03
    /// Is refunded for the running period.
    public var refunds = 0.03
    /// Is refunded for the period before.
    public var olderRefunds = 0.012
    /// Is refunded and the refund is taken back.
    public var refundReversals = 0.015
    /// The card fails.
    public var billingFailures = 0.07
    /// Of the failing cards, those that work again in time.
    public var recoveries = 0.7
    /// Goes to the higher level.
    public var upgrades = 0.025
    /// Goes lower, or to another length, at the next renewal.
    public var downgrades = 0.02
    /// Goes to another product of the same level.
    public var crossgrades = 0.02
    /// Gets the period extended.
    public var extensions = 0.015
    /// Is asked for consent to a higher price.
    public var priceIncreases = 0.03
    /// Of those asked, who agree; the others do not answer and lapse.
    public var priceConsents = 0.6
    /// The product is not for sale at the next renewal.
    public var withdrawals = 0.01
    /// The subscription ends for a reason Apple does not give.
    public var unexplainedEnds = 0.005
    /// Takes a promotional offer or a code for the next renewals.
    public var redeemedOffers = 0.02
    /// A family share is taken away.
    public var revocations = 0.1
    /// Deletes the account.
    public var accountDeletions = 0.004
    /// Of those who left, who come back, some of them with an offer.
    public var comebacks = 0.75

    /// The defaults.
    public init() {}
}
