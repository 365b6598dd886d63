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

    /// Creates traits with the defaults.
    package init() {}

    /// No traits: plain subscribers with today's receipts.
    package static let none: CustomerTraits = {
        var traits = CustomerTraits()
        for path in all { traits[keyPath: path] = 0 }
        return traits
    }()

    private static var all: [WritableKeyPath<CustomerTraits, Double>] {
        [
            \.freeTrial, \.payAsYouGo, \.payUpFront, \.offerCode, \.grace, \.familyShared, \.magazine,
            \.ownBesideShared, \.withoutSubscription, \.lifetime, \.coins, \.restored, \.secondCustomer,
            \.sendsRenewals, \.accountToken, \.legacyReceipt, \.quantities, \.seasons, \.commitments,
            \.groups, \.seats, \.namesPlan, \.quirk,
        ]
    }
}
