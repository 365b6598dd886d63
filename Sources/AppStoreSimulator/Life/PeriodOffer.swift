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
    /// The id of a promotional offer; nil means the store's own one.
    let id: String?
    var periodsLeft: Int

    init(_ offer: PeriodOffer, id: String? = nil) {
        self.offer = offer
        self.id = id
        periodsLeft = offer.periods
    }
}

extension CustomerAction {
    /// The offer that an action names.
    var balance: OfferBalance? { offer.map { OfferBalance($0, id: offerID) } }
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
