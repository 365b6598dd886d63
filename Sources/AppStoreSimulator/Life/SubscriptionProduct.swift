/// What can be subscribed to. All are in the group 20000001; plus is the higher level.
public enum SubscriptionProduct: String, CaseIterable, Codable, Sendable {
    /// A quarter of a month.
    case weekly
    /// One month.
    case monthly
    /// Twelve months.
    case yearly
    /// One month at the higher level.
    case plusMonthly = "plus.monthly"

    static let groupID = "20000001"

    /// The suffix of the one-time purchase some customers also have.
    static let lifetimeSuffix = "lifetime"

    var months: Double {
        switch self {
        case .weekly: 0.25
        case .monthly, .plusMonthly: 1
        case .yearly: 12
        }
    }

    var isHigherLevel: Bool {
        switch self {
        case .plusMonthly: true
        case .weekly, .monthly, .yearly: false
        }
    }

    /// Where a customer who asks for less, or for another duration, goes at the next renewal.
    var downgrade: SubscriptionProduct {
        switch self {
        case .plusMonthly, .weekly, .yearly: .monthly
        case .monthly: .weekly
        }
    }

    func identifier(in bundleID: String) -> String { bundleID + "." + rawValue }
}
