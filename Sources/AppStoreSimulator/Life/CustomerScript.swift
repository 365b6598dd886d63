/// The two stores that Apple runs. Their ids and receipts never mix.
package enum StoreEnvironment: String, CaseIterable, Codable, Sendable {
    /// The real store.
    case production = "Production"
    /// The testers' store.
    case sandbox = "Sandbox"

    /// Accepts `Sandbox` and `sandbox`; returns nil for any unknown name.
    init?(named name: String) {
        guard let found = Self.allCases.first(where: { $0.rawValue.lowercased() == name.lowercased() }) else {
            return nil
        }
        self = found
    }
}

/// A customer's planned life: the purchases, and the actions in each period.
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
        /// The period, counted from 0.
        package var period: Int
        /// The point in the period: 0 is its start and 1 its end. Values beyond 1 count in periods after the end, but a
        /// period counts as at most a month.
        package var at: Double
        /// The action.
        package var action: CustomerAction

        /// Creates a step with an action at a point of a period.
        package init(period: Int, at: Double, action: CustomerAction) {
            self.period = period
            self.at = at
            self.action = action
        }

        /// Creates a step with an action that has its defaults.
        package init(period: Int, at: Double, _ kind: CustomerAction.Kind) {
            self.init(period: period, at: at, action: CustomerAction(kind))
        }
    }

    /// The first product.
    package var product = SubscriptionProduct.monthly
    /// Whether the customer subscribes; false for one with only one-time purchases.
    package var subscribes = true
    /// The offer the subscription begins with.
    package var startOffer: PeriodOffer?
    /// Whether the app has the grace period switched on for this customer.
    package var hasGrace = false
    /// Whether the subscription is a family member's share of another customer's.
    package var isFamilyShared = false
    /// Whether the subscription is a seat that a group or an organisation gave the customer.
    package var isAssigned = false
    /// How a yearly product is paid.
    package var plan = BillingPlan.upfront
    /// The seats of the customer's group, or of the group that gave a seat; nil for one alone.
    package var seats: Int?
    /// Whether the signed texts name the plan of what is paid at once, too.
    package var namesPlan = false
    /// Whether the customer also owns the lifetime purchase.
    package var ownsLifetime = false
    /// The months between purchases of coins; nil means no purchases.
    package var coinsEveryMonths: Double?
    /// The months between purchases of a season; nil means no purchases.
    package var seasonEveryMonths: Double?
    /// Whether a purchase of coins has 1 to 10 pieces, by the seed.
    package var buysSeveral = false
    /// Whether a customer without a subscription begins without any purchase; others begin with the lifetime one.
    package var beginsEmpty = false
    /// Further subscriptions of the same account.
    package var alongside: [CustomerScript] = []
    /// Whether the device sends a receipt after every renewal, not only after purchases.
    package var sendsRenewals = false
    /// Months after the start at which a second customer of the app restores on this Apple account.
    package var secondCustomerAfterMonths: Double?
    /// Whether the app passed an `app_account_token` with the purchases.
    package var hasAccountToken = false
    /// Whether the device sends the transaction receipt of iOS 6.
    package var sendsLegacyReceipts = false
    /// The odd forms of the responses.
    package var quirks: Set<ByteQuirk> = []
    /// Whether the device restored: its receipt then carries its own transaction ids.
    package var hasRestored = false
    /// When renewals are charged.
    package var chargeHabit = ChargeHabit.onTime
    /// The number of past periods at the start.
    package var pastPeriods = 0
    /// The planned actions by period.
    package var steps: [Step] = []
    /// Whether the seed decides further actions, period by period.
    package var isDrawn = false

    /// Whether the first period is free.
    package var startsWithTrial: Bool {
        get { startOffer == .freeTrial }
        set { startOffer = newValue ? .freeTrial : nil }
    }

    /// Whether another customer pays.
    var isMember: Bool { isFamilyShared || isAssigned }

    /// Whether the first purchase begins a term of payments.
    var isPaidMonthly: Bool { plan == .monthly && product.hasPlans }

    /// Apple's `inAppOwnershipType`.
    var ownership: String { isAssigned ? "ASSIGNED" : isFamilyShared ? "FAMILY_SHARED" : "PURCHASED" }

    /// Creates a loyal customer of the monthly product.
    package init() {}
}
