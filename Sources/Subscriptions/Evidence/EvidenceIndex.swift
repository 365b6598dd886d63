/// The rows of an answer by what asks for them, so that cutting an answer up does not grow with the square of its rows.
struct EvidenceIndex: Sendable {
    /// Rows of periods, by subscription.
    private(set) var periods: [OriginalTransactionID: [TransactionRow]] = [:]
    /// Rows of one-time purchases.
    private(set) var purchases: [PurchaseKey: [TransactionRow]] = [:]
    /// Rows about renewal, by subscription, in the answer's order.
    let renewals: [OriginalTransactionID: [RenewalRow]]
    /// Rows of periods that name their group, by start.
    private let groups: [SubscriptionGroupID: [TransactionRow]]

    init(_ transactions: [TransactionRow], _ renewals: [RenewalRow]) {
        self.renewals = Dictionary(grouping: renewals, by: \.originalTransactionID)
        var groups: [SubscriptionGroupID: [TransactionRow]] = [:]
        for row in transactions where row.expiresAt != nil {
            periods[row.originalTransactionID, default: []].append(row)
            if let group = row.groupID { groups[group, default: []].append(row) }
        }
        self.groups = groups.mapValues { rows in
            rows.sorted {
                ($0.purchasedAt, $0.originalTransactionID) < ($1.purchasedAt, $1.originalTransactionID)
            }
        }
        file(transactions.filter { $0.expiresAt == nil })
    }

    /// A row without an expiry is a one-time purchase, unless the answer shows elsewhere that it is a period: then it
    /// takes the expiry of the row it repeats, and says nothing if it repeats none.
    private mutating func file(_ rows: [TransactionRow]) {
        let hasDoubtful = rows.contains { periods[$0.originalTransactionID] != nil }
        let twins = RowTwins(hasDoubtful ? periods : [:])
        for row in rows {
            if let expiresAt = twins.expiry(of: row) {
                var complete = row
                complete.expiresAt = expiresAt
                periods[row.originalTransactionID]?.append(complete)
            } else if !twins.isPeriod(row) {
                let key = PurchaseKey(originalTransactionID: row.originalTransactionID, productID: row.productID)
                purchases[key, default: []].append(row)
            }
        }
    }

    /// The other subscription of the group that took over from the last upgraded row, by the first row that replaces it:
    /// see `replaces`. A row that was itself taken back since took over all the same.
    func replacement(of subscription: OriginalTransactionID) -> OriginalTransactionID? {
        let upgraded = (periods[subscription] ?? []).filter(\.isUpgraded)
        guard let replaced = upgraded.max(by: { $0.purchasedAt < $1.purchasedAt }),
            let group = replaced.groupID, let rows = groups[group]
        else { return nil }
        return rows[rows.firstIndex(startingAt: replaced.replaceableFrom)...]
            .first { $0.originalTransactionID != subscription && $0.replaces(replaced) }?.originalTransactionID
    }
}

extension TransactionRow {
    /// How much earlier than the cancellation of the replaced row its replacement may start: both are written at the same
    /// moment, one to the second and the other to the millisecond.
    private static let cancellationTolerance = Delay.minutes(1)

    /// From when on a row can take the place of this upgraded one: its cancellation, or its start where Apple gives none.
    fileprivate var replaceableFrom: Instant { cancelledAt.map { $0 - Self.cancellationTolerance } ?? purchasedAt }

    /// Whether it took the place of an upgraded row: it began, when that was replaced and before that would have ended.
    ///
    /// An upgraded row without a cancellation date (the sandbox sends such) does not say when it was replaced. Then only
    /// another product that the customer holds in the same way takes its place: what a member of the family shares, or a
    /// second subscription of the same product, is beside it.
    fileprivate func replaces(_ upgraded: TransactionRow) -> Bool {
        let end = expiresAt ?? purchasedAt
        let hasBegun = min(cancelledAt ?? end, end) >= purchasedAt
        guard hasBegun, let upgradedEnd = upgraded.expiresAt, purchasedAt < upgradedEnd,
            purchasedAt >= upgraded.replaceableFrom
        else { return false }
        return upgraded.cancelledAt != nil
            || productID != upgraded.productID
                && (ownership == .familyShared) == (upgraded.ownership == .familyShared)
    }
}

extension [TransactionRow] {
    /// The first of rows in order of start that starts at the instant or later.
    fileprivate func firstIndex(startingAt instant: Instant) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].purchasedAt < instant { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
