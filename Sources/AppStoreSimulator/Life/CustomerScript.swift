/// How a customer will live: what is bought, and what is done in which period.
package struct CustomerScript: Sendable {
    /// When the store charges a renewal.
    package enum ChargeHabit: String, Codable, Sendable, CaseIterable {
        /// Up to a thirtieth of a month before the expiry.
        case early
        /// At the expiry.
        case onTime = "on_time"
        /// Up to a hundredth of a month after the expiry.
        case late
    }

    /// One action in one period.
    package struct Step: Sendable {
        /// Counts periods from 0.
        package var period: Int
        /// 0 is the period's start and 1 its end; beyond 1 counts in periods, but at most in months, after the end.
        package var at: Double
        /// What is done.
        package var action: CustomerAction

        /// An action at a point of a period.
        package init(period: Int, at: Double, action: CustomerAction) {
            self.period = period
            self.at = at
            self.action = action
        }

        /// An action with its defaults at a point of a period.
        package init(period: Int, at: Double, _ kind: CustomerAction.Kind) {
            self.init(period: period, at: at, action: CustomerAction(kind))
        }
    }

    /// The first product.
    package var product = SubscriptionProduct.monthly
    /// False for somebody who only makes one-time purchases.
    package var subscribes = true
    /// The offer the subscription begins with.
    package var startOffer: PeriodOffer?
    /// The app has the grace period switched on for this customer.
    package var hasGrace = false
    /// A family member's share of someone else's subscription.
    package var isFamilyShared = false
    /// The customer also owns the one-time purchase.
    package var ownsLifetime = false
    /// Months between purchases of coins; nil buys none.
    package var coinsEveryMonths: Double?
    /// Further subscriptions of the same account.
    package var alongside: [CustomerScript] = []
    /// The device sends a receipt after every renewal, not only after purchases.
    package var sendsRenewals = false
    /// A second customer of the app restores on this Apple account so many months after the start.
    package var secondCustomerAfterMonths: Double?
    /// The app gave an `app_account_token` with the purchases.
    package var hasAccountToken = false
    /// The device sends the transaction receipt of iOS 6.
    package var sendsLegacyReceipts = false
    /// Odd forms of the answers.
    package var quirks: Set<ByteQuirk> = []
    /// The device restored: its receipt carries transaction ids of its own.
    package var hasRestored = false
    /// When renewals are charged.
    package var chargeHabit = ChargeHabit.onTime
    /// Periods that lie in the past at the start.
    package var pastPeriods = 0
    /// What is done in which period.
    package var steps: [Step] = []
    /// The seed also decides what is done, period by period.
    package var isDrawn = false

    /// The first period is free.
    package var startsWithTrial: Bool {
        get { startOffer == .freeTrial }
        set { startOffer = newValue ? .freeTrial : nil }
    }

    /// A loyal customer of the monthly product.
    package init() {}
}
