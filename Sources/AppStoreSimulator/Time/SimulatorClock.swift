import Foundation

/// An instant in milliseconds since 1970, the only kind of time inside the simulator.
struct StoreTime: Hashable, Comparable, Sendable {
    let milliseconds: Int64

    init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The start of this instant's second: Apple's purchase and expiry dates are whole seconds.
    var wholeSecond: StoreTime {
        let remainder = milliseconds % 1000
        return StoreTime(milliseconds: milliseconds - (remainder < 0 ? remainder + 1000 : remainder))
    }

    static func < (left: StoreTime, right: StoreTime) -> Bool { left.milliseconds < right.milliseconds }

    static func + (moment: StoreTime, milliseconds: Int64) -> StoreTime {
        StoreTime(milliseconds: moment.milliseconds + milliseconds)
    }

    static func - (moment: StoreTime, milliseconds: Int64) -> StoreTime {
        StoreTime(milliseconds: moment.milliseconds - milliseconds)
    }
}

/// The simulator's source of time. Tests pass a clock that they control.
package struct SimulatorClock: Sendable {
    /// Returns the present instant in milliseconds since 1970.
    package let milliseconds: @Sendable () -> Int64

    /// Creates a clock from a closure that returns milliseconds since 1970.
    package init(milliseconds: @escaping @Sendable () -> Int64) {
        self.milliseconds = milliseconds
    }

    /// The machine's clock.
    package static let system = SimulatorClock {
        Int64((Date().timeIntervalSince1970 * 1000).rounded(.down))
    }

    var now: StoreTime { StoreTime(milliseconds: milliseconds()) }
}

/// The length of Apple's months in the simulator. Every other length derives from it.
struct TimeScale: Sendable {
    let monthMilliseconds: Double

    init(monthSeconds: Double) {
        self.monthMilliseconds = max(monthSeconds, 0.001) * 1000
    }

    /// Returns the length of a period in whole seconds, at least one: Apple's dates carry no milliseconds.
    func length(of product: SubscriptionProduct) -> Int64 { wholeSeconds(months: product.months) }

    /// Returns the length with an offer. A free trial lasts a week; a pay-up-front offer lasts two periods, but at most
    /// a year.
    func length(of product: SubscriptionProduct, with offer: PeriodOffer?) -> Int64 {
        switch offer {
        case .freeTrial: wholeSeconds(months: 0.25)
        case .payUpFront: wholeSeconds(months: min(12, product.months * 2))
        case .payAsYouGo, .promotional, .offerCode, nil: length(of: product)
        }
    }

    /// Returns the grace period: sixteen days of thirty, or six for weekly products, as Apple caps them.
    func grace(for product: SubscriptionProduct) -> Int64 {
        switch product {
        case .weekly: wholeSeconds(months: 6.0 / 30)
        case .monthly, .yearly, .duoMonthly, .plusMonthly, .magazineMonthly, .magazineYearly:
            wholeSeconds(months: 16.0 / 30)
        }
    }

    /// The time for which Apple retries a failed charge, about sixty days.
    var retry: Int64 { wholeSeconds(months: 2) }

    /// The length of what one payment of a term pays.
    var payment: Int64 { length(of: .monthly) }

    /// The time for which Apple retries a failed payment of a term, about ninety days.
    var paymentRetry: Int64 { wholeSeconds(months: 3) }

    /// The longest time between an early charge and the expiry: a day of thirty.
    var earlyMax: Int64 { Int64(monthMilliseconds / 30) }

    /// The longest time between the expiry and a late booking.
    var lateMax: Int64 { Int64(monthMilliseconds / 100) }

    func milliseconds(months: Double) -> Int64 { Int64(monthMilliseconds * months) }

    private func wholeSeconds(months: Double) -> Int64 {
        max(1, Int64((monthMilliseconds * months / 1000).rounded())) * 1000
    }
}
