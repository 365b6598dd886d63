/// The claims about an offer, in transactions and renewals alike.
struct OfferClaims: Sendable {
    let offer: PeriodOffer
    /// The id of a promotional offer; nil means the store's own one.
    let id: String?
    let product: SubscriptionProduct

    func write(to json: inout JSONWriter) {
        json.number("offerType", offer.type)
        switch offer {
        case .promotional: json.text("offerIdentifier", id ?? PeriodOffer.promotionalOfferID)
        case .offerCode: json.text("offerIdentifier", PeriodOffer.offerCodeName)
        case .freeTrial, .payAsYouGo, .payUpFront: break
        }
        json.text("offerDiscountType", offer.discount)
        json.text("offerPeriod", period)
    }

    /// The length of the offer's period, as in ISO 8601.
    private var period: String {
        switch (offer, product.months) {
        case (.freeTrial, _): "P1W"
        case (.payUpFront, ..<1): "P2W"
        case (.payUpFront, 1..<12): "P2M"
        case (_, ..<1): "P1W"
        case (_, 1..<12): "P1M"
        case (_, _): "P1Y"
        }
    }
}

extension PeriodOffer {
    /// Apple's `offerType`.
    fileprivate var type: Int64 {
        switch self {
        case .freeTrial, .payAsYouGo, .payUpFront: 1
        case .promotional: 2
        case .offerCode: 3
        }
    }

    /// Apple's `offerDiscountType`.
    fileprivate var discount: String {
        switch self {
        case .freeTrial: "FREE_TRIAL"
        case .payUpFront: "PAY_UP_FRONT"
        case .payAsYouGo, .promotional, .offerCode: "PAY_AS_YOU_GO"
        }
    }
}
