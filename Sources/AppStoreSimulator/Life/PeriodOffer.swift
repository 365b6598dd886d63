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

    /// The simulator's value of Apple's `promotional_offer_id`.
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
    var isPaidIntroduction: Bool {
        switch self {
        case .payAsYouGo, .payUpFront: true
        case .freeTrial, .promotional, .offerCode: false
        }
    }
}

/// An offer that applies to some of the next periods.
struct OfferBalance: Sendable, Equatable {
    let offer: PeriodOffer
    var periodsLeft: Int
}

/// The state of a price increase that needs the customer's consent.
enum PriceConsent: Sendable {
    case asked
    case given

    /// The value of `price_consent_status` and `price_increase_status`.
    var status: String {
        switch self {
        case .asked: "0"
        case .given: "1"
        }
    }
}
