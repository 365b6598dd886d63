/// How long a subscription's periods are, and how such customers behave: made up, but in the range of published averages.
enum PeriodKind: String, CaseIterable {
    case weekly, monthly, yearly

    var days: Int64 {
        switch self {
        case .weekly: 7
        case .monthly: 30
        case .yearly: 365
        }
    }

    /// Of a hundred periods, how many the customer lets end.
    var endedByCustomer: Double {
        switch self {
        case .weekly: 5
        case .monthly: 6
        case .yearly: 25
        }
    }

    /// Of a hundred periods, after how many the charge fails at first, how many are refunded, and after how many the
    /// charge comes late though nothing is wrong.
    var failing: Double { 4 }
    var refunded: Double { 1 }
    var late: Double { 1 }
}

/// Which subscribers an app has.
struct SubscriberMix {
    let name: String
    /// Of a hundred subscribers, how many have periods of a kind.
    let shares: [(kind: PeriodKind, share: Int)]
    /// What the calls of a year may come to at most, as a part of naive daily polling.
    let partMax: Double

    static let all = [
        SubscriberMix(
            name: "70 % monthly, 30 % yearly", shares: [(.monthly, 70), (.yearly, 30)], partMax: 0.20),
        SubscriberMix(
            name: "20 % weekly, 50 % monthly, 30 % yearly", shares: [(.weekly, 20), (.monthly, 50), (.yearly, 30)],
            partMax: 0.25),
    ]
}
