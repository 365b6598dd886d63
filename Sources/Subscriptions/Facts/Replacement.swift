/// What replaced the upgraded periods of one subscription.
///
/// A period that began replaces an upgraded one if it starts later, or with it as another product, or if it is another
/// product that was under way when a period charged ahead of time was taken back before it began. It does so even if it
/// was itself taken back since.
enum Replacement {
    /// For every period the instant at which another took its place; nil where none did, or it is not upgraded.
    ///
    /// `periods` are in canonical order; one pass.
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
                instants[index] = ends.takeover(of: period) ?? (hasRival ? start : begun.first?.purchasedAt)
            }
            for period in begunTogether { ends.note(period) }
            first = together.endIndex
        }
        return instants
    }

    /// When the access of two products ended that last longest, of all that started so far.
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

        /// When another product took the place of a period that was taken back before it began.
        func takeover(of period: Period) -> Instant? {
            guard period.neverBegan, let cancelledAt = period.cancelledAt else { return nil }
            let rival = latest?.product == period.productID ? other : latest
            return rival.flatMap { $0.end > cancelledAt ? cancelledAt : nil }
        }
    }
}

extension Period {
    /// When its access ended: its expiry, or earlier when it was taken back.
    var accessEnd: Instant { min(cancelledAt ?? expiresAt, expiresAt) }

    /// Whether it was taken back before it began: charged ahead of time, then refunded or replaced.
    var neverBegan: Bool { cancelledAt.map { $0 < purchasedAt } ?? false }
}
