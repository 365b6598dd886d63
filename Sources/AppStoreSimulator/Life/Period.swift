/// One paid (or free) stretch of a subscription. It records when each fact became known, so that a device's receipt
/// stays frozen at its creation while the server's rows move on.
struct Period: Sendable {
    struct Cancellation: Sendable {
        let at: StoreTime
        let reason: Int
        let isUpgrade: Bool
        var undoneAt: StoreTime?
    }

    /// The number of the period in its subscription, from 0; the row's ids derive from it.
    let ordinal: Int
    /// Why the store booked it.
    let kind: LifeEventKind
    let product: SubscriptionProduct
    let bookedAt: StoreTime
    let purchase: StoreTime
    /// The offer that lowers its price.
    let redeemed: OfferBalance?
    /// The number of price increases that the customer had agreed to before.
    let priceIncreases: Int
    var buyer: Buyer
    /// Which payment of a term it is; nil where the whole period is paid at once.
    let payment: Payment?
    /// The seats of a group, or of the group of a member.
    var seats: Seats?
    /// Its ends, in the order in which they became known.
    private(set) var expiries: [(knownAt: StoreTime, expires: StoreTime)]
    private(set) var cancellations: [Cancellation] = []

    var offer: PeriodOffer? { redeemed?.offer }

    var isTrial: Bool { offer == .freeTrial }

    var expires: StoreTime { expiries.last?.expires ?? purchase }

    /// The cancellation in effect now.
    var cancellation: Cancellation? { cancellations.last { $0.undoneAt == nil } }

    var plan: BillingPlan { payment == nil ? .upfront : .monthly }

    /// When anything about it last changed.
    var modifiedAt: StoreTime {
        let changes: [StoreTime] =
            expiries.map { $0.knownAt } + cancellations.flatMap { [$0.at, $0.undoneAt ?? $0.at] }
            + (seats?.revocations.map { $0.at } ?? []) + [seats?.joinedAt ?? bookedAt]
        return changes.reduce(bookedAt) { max($0, $1) }
    }

    /// Returns the end as it was known at an instant.
    func expires(asOf moment: StoreTime) -> StoreTime {
        expiries.last { $0.knownAt <= moment }?.expires ?? expires
    }

    /// Returns the cancellation in effect at an instant.
    func cancellation(asOf moment: StoreTime) -> Cancellation? {
        cancellations.last { $0.at <= moment && $0.undoneAt.map { $0 > moment } ?? true }
    }

    mutating func extend(to expires: StoreTime, at moment: StoreTime) {
        expiries.append((knownAt: moment, expires: expires))
    }

    mutating func cancel(at moment: StoreTime, reason: Int, isUpgrade: Bool) {
        cancellations.append(Cancellation(at: moment, reason: reason, isUpgrade: isUpgrade))
    }

    mutating func undoCancellation(at moment: StoreTime) {
        guard let index = cancellations.lastIndex(where: { $0.undoneAt == nil }) else { return }
        cancellations[index].undoneAt = moment
    }
}

/// The offer that makes a period cheaper than the full price.
package enum PeriodOffer: String, Codable, Sendable, CaseIterable {
    /// Introductory: a free week.
    case freeTrial = "free_trial"
    /// Introductory: three periods at a lower price.
    case payAsYouGo = "pay_as_you_go"
    /// Introductory: one longer period, paid in advance.
    case payUpFront = "pay_up_front"
    /// An offer signed by the app, for two periods.
    case promotional
    /// A code entered by the customer, for two periods.
    case offerCode = "offer_code"

    /// The value of Apple's `promotional_offer_id` where an action names no other.
    static let promotionalOfferID = "winter50"
    /// The simulator's value of Apple's `offer_code_ref_name`.
    static let offerCodeName = "SPRING25"

    /// The number of periods the offer lasts.
    var periods: Int {
        switch self {
        case .freeTrial, .payUpFront: 1
        case .promotional, .offerCode: 2
        case .payAsYouGo: 3
        }
    }

    /// Whether Apple sets `is_in_intro_offer_period`, which it does not for a free trial.
    var isPaidIntroduction: Bool { self == .payAsYouGo || self == .payUpFront }
}

/// An offer that applies to some of the next periods.
struct OfferBalance: Sendable, Equatable {
    let offer: PeriodOffer
    /// Apple's id, where the offer is a promotional one.
    let id: String
    var periodsLeft: Int

    /// Creates the balance of a new offer; a promotional one is the store's own one unless an id is given.
    init(_ offer: PeriodOffer, id: String? = nil) {
        self.offer = offer
        self.id = id ?? PeriodOffer.promotionalOfferID
        periodsLeft = offer.periods
    }
}

extension CustomerAction {
    /// The offer that an action names.
    var balance: OfferBalance? { offer.map { OfferBalance($0, id: offerID) } }
}

/// The state of a price increase that needs the customer's consent.
/// The raw values are those of `price_consent_status` and `price_increase_status`.
enum PriceConsent: Int64, Sendable {
    case asked = 0
    case given = 1
}

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

    var isHigherLevel: Bool { self == .plusMonthly }

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
