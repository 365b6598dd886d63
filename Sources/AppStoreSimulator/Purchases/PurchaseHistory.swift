/// The one-time purchases of one account: those made, and the time of the next purchase of coins.
struct PurchaseHistory: Sendable {
    private(set) var purchases: [OneTimePurchase] = []
    private let scale: TimeScale
    private let temper: UInt64
    private let coinsEvery: Int64?
    private let isDrawn: Bool
    private var nextCoins: StoreTime?

    init(script: CustomerScript, start: StoreTime, scale: TimeScale, temper: UInt64) {
        self.scale = scale
        self.temper = temper
        self.isDrawn = script.isDrawn
        self.coinsEvery = script.coinsEveryMonths.map { max(1000, scale.milliseconds(months: max(0.01, $0))) }
        self.nextCoins = coinsEvery.map { (start + $0 / 2).wholeSecond }
        if script.ownsLifetime || !script.subscribes { add(.lifetime, at: start) }
    }

    mutating func advance(to moment: StoreTime) {
        guard let coinsEvery else { return }
        while let next = nextCoins, next <= moment {
            add(.coins, at: next)
            var numbers = SeededGenerator(seed: temper, stream: 4_000_000 + UInt64(purchases.count))
            nextCoins = (next + max(1000, Int64(Double(coinsEvery) * numbers.between(0.5, 1.5)))).wholeSecond
        }
    }

    func nextChange(after moment: StoreTime) -> StoreTime? {
        let changes = purchases.suffix(Self.unsettledMax).compactMap { $0.nextChange(after: moment) }
        return (changes + [nextCoins].compactMap { $0 }).min()
    }

    mutating func buy(_ product: OneTimeProduct, at moment: StoreTime) { add(product, at: moment) }

    mutating func refundNewest(at moment: StoreTime) throws(ActionRefused) {
        guard let index = purchases.lastIndex(where: { $0.isListed(at: moment) && $0.refundAt == nil }) else {
            throw ActionRefused("there is no purchase to refund")
        }
        purchases[index].refundAt = moment
    }

    /// Coins are bought at most every few seconds, so this many newest purchases include all that can still change.
    private static let unsettledMax = 500

    /// Adds a purchase. The app finishes coins a month after the purchase. Some purchases of drawn customers are
    /// refunded.
    private mutating func add(_ product: OneTimeProduct, at moment: StoreTime) {
        let month = scale.length(of: .monthly)
        var purchase = OneTimePurchase(ordinal: purchases.count, product: product, bookedAt: moment)
        var numbers = SeededGenerator(seed: temper, stream: 5_000_000 + UInt64(purchases.count))
        switch product {
        case .lifetime:
            if isDrawn, numbers.chance(0.25) {
                purchase.refundAt = moment + Int64(Double(month) * numbers.between(0.5, 6))
            }
        case .coins:
            purchase.finishedAt = moment + month
            if isDrawn, numbers.chance(0.12) {
                purchase.refundAt = moment + Int64(Double(month) * numbers.between(0.1, 0.8))
            }
        }
        purchases.append(purchase)
    }
}
