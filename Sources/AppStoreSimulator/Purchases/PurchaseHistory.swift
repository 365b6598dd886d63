/// The one-time purchases of one account: those made, those that wait for an approval, and the times of the next ones.
struct PurchaseHistory: Sendable {
    /// The most purchases that have ids.
    static let purchasesMax = 100_000

    var purchases: [OneTimePurchase] = []
    var pending: [PendingPurchase] = []
    /// The number of purchases that ever waited for an approval.
    var askedCount = 0
    let scale: TimeScale
    let temper: UInt64
    private let coinsEvery: Int64?
    private let seasonEvery: Int64?
    private let buysSeveral: Bool
    private let isDrawn: Bool
    private var nextCoins: StoreTime?
    private var nextSeason: StoreTime?

    init(script: CustomerScript, start: StoreTime, scale: TimeScale, temper: UInt64) {
        func length(_ months: Double) -> Int64 { max(1000, scale.milliseconds(months: max(0.01, months))) }
        self.scale = scale
        self.temper = temper
        self.isDrawn = script.isDrawn
        self.buysSeveral = script.buysSeveral
        self.coinsEvery = script.coinsEveryMonths.map(length)
        self.seasonEvery = script.seasonEveryMonths.map(length)
        self.nextCoins = coinsEvery.map { (start + $0 / 2).wholeSecond }
        self.nextSeason = seasonEvery.map { (start + $0 / 3).wholeSecond }
        if script.ownsLifetime || !(script.subscribes || script.beginsEmpty) { add(.lifetime, at: start) }
    }

    mutating func advance(to moment: StoreTime) {
        while let next = [nextCoins, nextSeason].compactMap({ $0 }).min(), next <= moment {
            guard purchases.count < Self.purchasesMax else {
                (nextCoins, nextSeason) = (nil, nil)
                return
            }
            if next == nextCoins, let coinsEvery {
                add(.coins, at: next)
                nextCoins = later(than: next, by: coinsEvery)
            } else if let seasonEvery {
                add(.season, at: next)
                nextSeason = later(than: next, by: seasonEvery)
            }
        }
    }

    func nextChange(after moment: StoreTime) -> StoreTime? {
        let changes = purchases.suffix(Self.unsettledMax).compactMap { $0.nextChange(after: moment) }
        return (changes + [nextCoins, nextSeason].compactMap { $0 }).min()
    }

    /// Coins are bought at most every few seconds, so this many newest purchases include all that can still change by
    /// themselves.
    private static let unsettledMax = 500

    private func later(than moment: StoreTime, by length: Int64) -> StoreTime {
        var numbers = SeededGenerator(seed: temper, stream: 4_000_000 + UInt64(purchases.count))
        return (moment + max(1000, Int64(Double(length) * numbers.between(0.5, 1.5)))).wholeSecond
    }

    /// Adds a purchase that the script makes. The app finishes coins a month after the purchase. Some purchases of
    /// drawn customers are refunded.
    private mutating func add(_ product: OneTimeProduct, at moment: StoreTime) {
        let month = scale.length(of: .monthly)
        var order = PurchaseOrder(product: product)
        if buysSeveral, product == .coins { order.quantity = drawnQuantity }
        var purchase = OneTimePurchase(ordinal: purchases.count, order: order, bookedAt: moment)
        var numbers = SeededGenerator(seed: temper, stream: 5_000_000 + UInt64(purchases.count))
        switch product {
        case .lifetime:
            if isDrawn, numbers.chance(0.25) {
                let wait = Int64(Double(month) * numbers.between(0.5, 6))
                purchase.refunds = [OneTimePurchase.Refund(at: moment + wait)]
            }
        case .coins, .season:
            if product == .coins { purchase.finishedAt = moment + month }
            if isDrawn, numbers.chance(0.12) {
                let wait = Int64(Double(month) * numbers.between(0.1, 0.8))
                purchase.refunds = [OneTimePurchase.Refund(at: moment + wait)]
            }
        }
        purchases.append(purchase)
    }

    private var drawnQuantity: PurchaseQuantity {
        var numbers = SeededGenerator(seed: temper, stream: 6_000_000 + UInt64(purchases.count))
        return PurchaseQuantity(1 + numbers.below(10)) ?? .one
    }
}
