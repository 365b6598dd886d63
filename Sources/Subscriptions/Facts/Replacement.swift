/// Finds the replacements of the upgraded periods of one subscription.
///
/// A period that began replaces an upgraded period in three cases: it starts later; it starts at the same instant as
/// another product; or it is another product that was in progress when the upgraded period, charged ahead of time, was
/// taken back before it began. It remains the replacement even if it was itself taken back since. Other seats of the
/// same period replace none of it.
enum Replacement {
    /// Returns, for every period, the instant at which another took its place; nil if none did, or if it is not
    /// upgraded. `periods` must be in canonical order; takes one pass.
    static func instants(in periods: [Period]) -> [Instant?] {
        var instants = [Instant?](repeating: nil, count: periods.count)
        guard periods.contains(where: \.isUpgraded) else { return instants }
        var ends = LatestEnds()
        var begun = periods.filter { !$0.neverBegan }[...]
        var first = 0
        while first < periods.count {
            let start = periods[first].purchasedAt
            let together = periods[first...].prefix { $0.purchasedAt == start }
            let begunTogether = begun.prefix { $0.purchasedAt == start }
            begun = begun[begunTogether.endIndex...]
            let products = Set(begunTogether.map(\.productID))
            for (index, period) in zip(together.indices, together) where period.isUpgraded {
                let hasRival = products.count > (products.contains(period.productID) ? 1 : 0)
                let next = begun.first { !($0.isOneOfSeveral && $0.expiresAt == period.expiresAt) }
                instants[index] = ends.takeover(of: period) ?? (hasRival ? start : next?.purchasedAt)
            }
            for period in begunTogether { ends.note(period) }
            first = together.endIndex
        }
        return instants
    }

    /// Of all periods that started so far, the two products whose access ends last, and when it ends.
    private struct LatestEnds {
        private var latest: (product: ProductID, end: Instant)?
        private var other: (product: ProductID, end: Instant)?

        mutating func note(_ period: Period) {
            let noted = (product: period.productID, end: period.accessEnd)
            guard let known = latest else {
                latest = noted
                return
            }
            if known.product == noted.product {
                latest = known.end < noted.end ? noted : known
            } else if known.end < noted.end {
                (latest, other) = (noted, known)
            } else if other.map({ $0.end < noted.end }) ?? true {
                other = noted
            }
        }

        /// Returns when another product took the place of a period that was taken back before it began.
        func takeover(of period: Period) -> Instant? {
            guard period.neverBegan, let cancelledAt = period.cancelledAt else { return nil }
            let rival = latest?.product == period.productID ? other : latest
            return rival.flatMap { $0.end > cancelledAt ? cancelledAt : nil }
        }
    }
}

extension Period {
    /// The end of its access: its expiry, or earlier if it was taken back.
    var accessEnd: Instant { min(cancelledAt ?? expiresAt, expiresAt) }

    /// When Apple refunded the rest of a replaced period's price; nil if it did not. The replacement's own
    /// repayment has its date and states a share; a refund of the whole price with another date came beside it.
    func restRefundedAt(replacedAt: Instant?) -> Instant? {
        guard isUpgraded, movedTo == nil, !neverBegan, !isShared, let cancelledAt,
            details.revocationPercentage?.value == Self.wholePricePercentage
        else { return nil }
        let minute = Delay.minutes(1)
        let isRepayment =
            replacedAt.map { $0 - minute <= cancelledAt && cancelledAt <= $0 + minute } ?? (cancelledAt < expiresAt)
        return isRepayment ? nil : cancelledAt
    }

    /// `revocationPercentage` of a refund of the whole price.
    private static let wholePricePercentage = 100_000

    /// Whether it was taken back before it began: charged ahead of time, then refunded or replaced.
    var neverBegan: Bool { cancelledAt.map { $0 < purchasedAt } ?? false }
}
