/// The country in whose store an account buys, and its prices.
struct Storefront: Sendable {
    /// Three letters, as Apple writes countries.
    let country: String
    let id: String
    let currency: String
    /// How many units of the currency cost as much as one unit of the price list.
    private let rate: Int64

    static let all = [
        Storefront(country: "USA", id: "143441", currency: "USD", rate: 1),
        Storefront(country: "DEU", id: "143443", currency: "EUR", rate: 1),
        Storefront(country: "JPN", id: "143462", currency: "JPY", rate: 150),
    ]
}

extension Storefront {
    /// Returns the storefront of an account: by the seed, half of them in the first country.
    init(of account: Int, seed: UInt64) {
        var numbers = SeededGenerator(seed: seed ^ 0x570F, stream: UInt64(account))
        let draw = numbers.below(4)
        self = Self.all[draw < Self.all.count ? draw : 0]
    }

    /// Returns the price of a period in thousandths of the currency.
    func price(of product: SubscriptionProduct, with offer: PeriodOffer?, increases: Int) -> Int64 {
        let full = product.listPrice * rate * Int64(10 + increases) / 10
        return switch offer {
        case .freeTrial: 0
        case .payUpFront: full * 3 / 2
        case .payAsYouGo, .promotional: full / 2
        case .offerCode: full * 3 / 5
        case nil: full
        }
    }

    /// Returns the price of a period, or of one payment of a term: a twelfth of six fifths of the year.
    func price(of period: Period) -> Int64 {
        period.payment == nil
            ? price(of: period.product, with: period.offer, increases: period.priceIncreases)
            : payment(of: period.product, increases: period.priceIncreases)
    }

    /// Returns the price of one payment of a term in thousandths of the currency.
    func payment(of product: SubscriptionProduct, increases: Int) -> Int64 {
        product.listPrice / 10 * rate * Int64(10 + increases) / 10
    }

    /// Returns the price of one piece in thousandths of the currency.
    func price(of product: OneTimeProduct) -> Int64 { product.listPrice * rate }
}

extension World {
    /// Returns the storefront in which an account buys.
    func storefront(of account: Account) -> Storefront { Storefront(of: account.index, seed: population.seed) }
}

extension SubscriptionProduct {
    /// The price of a period in the price list, before currency and offers.
    fileprivate var listPrice: Int64 {
        switch self {
        case .weekly: 1990
        case .monthly: 4990
        case .yearly: 39_990
        case .duoMonthly: 5990
        case .plusMonthly: 9990
        case .magazineMonthly: 3990
        case .magazineYearly: 29_990
        }
    }
}

extension OneTimeProduct {
    /// The price of one piece in the price list.
    fileprivate var listPrice: Int64 {
        switch self {
        case .lifetime: 99_990
        case .coins: 990
        case .season: 14_990
        }
    }
}
