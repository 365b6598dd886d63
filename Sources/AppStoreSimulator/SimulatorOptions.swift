/// The configuration of a simulated App Store.
package struct SimulatorOptions: Sendable {
    package var host = "127.0.0.1"
    /// The port to listen on; 0 takes any free one.
    package var port = 8090
    /// The seed of the population, the ids and the faults.
    package var seed: UInt64
    /// The app's shared secret at the start, 32 hexadecimal characters derived from the seed unless set.
    package var sharedSecret: String
    /// The only app this store sells.
    package var bundleID = "com.example.tracker"
    /// Customers of the production store at the start.
    package var customers = 200
    package var sandboxCustomers = 10
    /// New customers of the production store per month, spread evenly from the epoch on.
    package var arrivalsPerMonth = 0.0
    /// The seconds of a month. A week is a quarter of it, a year twelve. Periods are whole seconds, at least one.
    package var monthSeconds = 60.0
    /// The most past periods of a seeded customer at the epoch; each has 0 to this many.
    package var pastPeriodsMax = 6
    /// The instant around which the population is laid out, in milliseconds since 1970; nil means the start of the
    /// process. The same seed and epoch give the same lives.
    package var epochMilliseconds: Int64?
    package var traits = CustomerTraits()
    package var chances = PeriodChances()
    /// Whether lives stand still at the epoch while the request dates move: every response then stays the same.
    package var standsStill = false
    /// The delay of every response of verifyReceipt and the Server API, in milliseconds.
    package var latencyMilliseconds = 0
    /// The faults of verifyReceipt from the start.
    package var faults: [Fault] = []
    /// Where notifications go from the start; nil means that none are made.
    package var notifications: NotificationOptions?
    /// The most bytes of a request body; a longer one gets HTTP 413.
    package var bodyBytesMax = 8 << 20
    /// The most bytes of rendered responses kept in all, so that repeated requests are cheap.
    package var keptAnswerBytesMax = 2 << 30

    /// Creates options with the defaults and the secret of a seed.
    package init(seed: UInt64 = 1) {
        self.seed = seed
        self.sharedSecret = SimulatorOptions.secret(of: seed)
    }

    /// Returns the shared secret that a seed gives.
    static func secret(of seed: UInt64) -> String {
        var numbers = SeededGenerator(seed: seed, stream: 77)
        let digits = Array("0123456789abcdef")
        return String((0..<32).map { _ in digits[numbers.below(16)] })
    }
}

extension SimulatorOptions {
    /// The epochs that a store may have, in milliseconds since 1970.
    package static var epochs: ClosedRange<Int64> { StoreTime.nameable }
    /// The length of a month of the calendar, a twelfth of 365.25 days, in seconds.
    package static let calendarMonthSeconds = 2_629_800.0
    private static let yearMilliseconds: Int64 = 365 * 86_400_000

    /// Returns the options of a second app, whose customers live at the speed of the calendar: `customers` arrived in
    /// the year before the instant in milliseconds since 1970, and as many arrive in each later year.
    package func calendarApp(_ bundleID: String, customers: Int, at milliseconds: Int64) -> SimulatorOptions {
        var options = self
        // Receipts of one store are forged ones for the other.
        options.seed = seed &+ 1
        options.bundleID = bundleID
        options.customers = 0
        options.notifications = nil
        options.sandboxCustomers = 0
        // A trial lasts a week of a year, so few run at a time.
        if traits.freeTrial > 0 { options.traits.freeTrial = 0.5 }
        // Some pay a year month by month, and some buy for a group or have a seat of one.
        if traits.namesPlan > 0 {
            (options.traits.commitments, options.traits.groups, options.traits.seats) = (0.12, 0.05, 0.05)
        }
        options.arrivalsPerMonth = Double(customers) / 12
        options.monthSeconds = Self.calendarMonthSeconds
        options.epochMilliseconds = milliseconds - Self.yearMilliseconds
        return options
    }
}

/// The share of drawn customers, 0 to 1, with each trait. By default a thousand customers include dozens of each kind.
package struct CustomerTraits: Codable, Sendable {
    /// Begin with a free week.
    package var freeTrial = 0.25
    /// Begin with three cheaper periods.
    package var payAsYouGo = 0.06
    /// Begin with one longer period, paid at once.
    package var payUpFront = 0.05
    /// Begin with an offer code.
    package var offerCode = 0.05
    /// Have the grace period switched on.
    package var grace = 0.5
    /// Have a family share of another customer's subscription.
    package var familyShared = 0.05
    /// Also subscribe to the magazine, which is another group.
    package var magazine = 0.12
    /// Own the tracker's subscription and also have a family share of it.
    package var ownBesideShared = 0.03
    /// Have one-time purchases and no subscription.
    package var withoutSubscription = 0.03
    /// Own the lifetime purchase.
    package var lifetime = 0.08
    /// Buy coins repeatedly.
    package var coins = 0.08
    /// Send the receipt of a restore, whose rows have their own transaction ids.
    package var restored = 0.12
    /// Have a second customer of the app on their Apple account, who restores there.
    package var secondCustomer = 0.05
    /// Send a new receipt after every renewal, not only after purchases.
    package var sendsRenewals = 0.3
    /// Have an `app_account_token` in the rows of their answers.
    package var accountToken = 0.4
    /// Send the transaction receipts of iOS 6.
    package var legacyReceipt = 0.03
    /// Buy 1 to 10 pieces of coins at a time.
    package var quantities = 0.0
    /// Buy a season repeatedly.
    package var seasons = 0.0
    /// Pay a year month by month.
    package var commitments = 0.0
    /// Buy seats for a group.
    package var groups = 0.0
    /// Have a seat of another customer's group.
    package var seats = 0.0
    /// Have signed texts that name the plan even where a period is paid at once.
    package var namesPlan = 0.5
    /// Get each odd form of ``ByteQuirk`` in the responses about them.
    package var quirk = 0.04

    /// No traits: plain subscribers with today's receipts.
    package static let none = CustomerTraits(
        freeTrial: 0, payAsYouGo: 0, payUpFront: 0, offerCode: 0, grace: 0, familyShared: 0, magazine: 0,
        ownBesideShared: 0, withoutSubscription: 0, lifetime: 0, coins: 0, restored: 0, secondCustomer: 0,
        sendsRenewals: 0, accountToken: 0, legacyReceipt: 0, quantities: 0, seasons: 0, commitments: 0, groups: 0,
        seats: 0, namesPlan: 0, quirk: 0)
}

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
}
