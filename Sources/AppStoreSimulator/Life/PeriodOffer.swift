/// Why a period cost less than the price.
package enum PeriodOffer: String, Codable, Sendable, CaseIterable {
    /// Introductory: a free week.
    case freeTrial = "free_trial"
    /// Introductory: three periods at a lower price.
    case payAsYouGo = "pay_as_you_go"
    /// Introductory: one longer period, paid at once.
    case payUpFront = "pay_up_front"
    /// An offer the app signed, for two periods.
    case promotional
    /// A code the customer typed in, for two periods.
    case offerCode = "offer_code"

    /// Apple's `promotional_offer_id` here.
    static let promotionalOfferID = "winter50"
    /// Apple's `offer_code_ref_name` here.
    static let offerCodeName = "SPRING25"

    /// How many periods it lasts.
    var periods: Int {
        switch self {
        case .freeTrial, .payUpFront: 1
        case .promotional, .offerCode: 2
        case .payAsYouGo: 3
        }
    }

    /// Apple's `is_in_intro_offer_period`, which a free trial does not set.
    var isPaidIntroduction: Bool {
        switch self {
        case .payAsYouGo, .payUpFront: true
        case .freeTrial, .promotional, .offerCode: false
        }
    }
}

/// An offer that some of the next periods will have.
struct OfferBalance: Sendable, Equatable {
    let offer: PeriodOffer
    var periodsLeft: Int
}
