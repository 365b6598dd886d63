/// How long Apple's months are here. Every other length follows from the month.
struct TimeScale: Sendable {
    let monthMilliseconds: Double

    init(monthSeconds: Double) {
        self.monthMilliseconds = max(monthSeconds, 0.001) * 1000
    }

    /// A period in whole seconds, at least one: Apple's dates carry no milliseconds.
    func length(of product: SubscriptionProduct) -> Int64 { wholeSeconds(months: product.months) }

    /// A free trial lasts a week; what is paid up front lasts two periods, but at most a year.
    func length(of product: SubscriptionProduct, with offer: PeriodOffer?) -> Int64 {
        switch offer {
        case .freeTrial: wholeSeconds(months: 0.25)
        case .payUpFront: wholeSeconds(months: min(12, product.months * 2))
        case .payAsYouGo, .promotional, .offerCode, nil: length(of: product)
        }
    }

    /// Sixteen days of thirty, or six for weekly products, as Apple caps them.
    func grace(for product: SubscriptionProduct) -> Int64 {
        switch product {
        case .weekly: wholeSeconds(months: 6.0 / 30)
        case .monthly, .yearly, .duoMonthly, .plusMonthly, .magazineMonthly, .magazineYearly:
            wholeSeconds(months: 16.0 / 30)
        }
    }

    /// Apple tries a failed charge again for about sixty days.
    var retry: Int64 { wholeSeconds(months: 2) }

    /// A renewal may be charged this long before the expiry: a day of thirty.
    var earlyMax: Int64 { Int64(monthMilliseconds / 30) }

    /// A renewal may be booked this long after the expiry.
    var lateMax: Int64 { Int64(monthMilliseconds / 100) }

    func milliseconds(months: Double) -> Int64 { Int64(monthMilliseconds * months) }

    private func wholeSeconds(months: Double) -> Int64 {
        max(1, Int64((monthMilliseconds * months / 1000).rounded())) * 1000
    }
}
