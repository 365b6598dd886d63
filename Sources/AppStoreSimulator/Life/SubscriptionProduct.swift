/// A subscription product. There are two groups: the tracker's own, where plus is the higher level, and a magazine.
package enum SubscriptionProduct: String, CaseIterable, Codable, Sendable {
    /// A quarter of a month.
    case weekly
    /// One month.
    case monthly
    /// Twelve months.
    case yearly
    /// One month at the level of `monthly`, for two people: a customer crossgrades at once.
    case duoMonthly = "duo.monthly"
    /// One month at the higher level.
    case plusMonthly = "plus.monthly"
    /// The magazine, one month.
    case magazineMonthly = "magazine.monthly"
    /// The magazine, twelve months.
    case magazineYearly = "magazine.yearly"

    var months: Double {
        switch self {
        case .weekly: 0.25
        case .monthly, .duoMonthly, .plusMonthly, .magazineMonthly: 1
        case .yearly, .magazineYearly: 12
        }
    }

    /// Apple's `subscription_group_identifier`: an account has at most one subscription of a group at a time.
    var groupID: String {
        switch self {
        case .weekly, .monthly, .yearly, .duoMonthly, .plusMonthly: "20000001"
        case .magazineMonthly, .magazineYearly: "20000002"
        }
    }

    var isHigherLevel: Bool {
        switch self {
        case .plusMonthly: true
        case .weekly, .monthly, .yearly, .duoMonthly, .magazineMonthly, .magazineYearly: false
        }
    }

    /// The product of the higher level in the same group.
    var upgrade: SubscriptionProduct? {
        switch self {
        case .weekly, .monthly, .yearly, .duoMonthly: .plusMonthly
        case .plusMonthly, .magazineMonthly, .magazineYearly: nil
        }
    }

    /// The product for the next renewal of a customer who wants less, or another duration.
    var downgrade: SubscriptionProduct {
        switch self {
        case .plusMonthly, .weekly, .yearly, .duoMonthly: .monthly
        case .monthly: .weekly
        case .magazineMonthly: .magazineYearly
        case .magazineYearly: .magazineMonthly
        }
    }

    /// Another product of the same level: at once when it has the same length, else at the next renewal.
    var crossgrade: SubscriptionProduct? {
        switch self {
        case .monthly: .duoMonthly
        case .duoMonthly: .monthly
        case .weekly: .yearly
        case .yearly: .weekly
        case .magazineMonthly: .magazineYearly
        case .magazineYearly: .magazineMonthly
        case .plusMonthly: nil
        }
    }

    func identifier(in bundleID: String) -> String { bundleID + "." + rawValue }
}
