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

    /// The other subscription of the group that took over from the last upgraded row: the first whose row starts with
    /// it or later and goes on after it ended. A row that was itself taken back since took over all the same.
    func replacement(of subscription: OriginalTransactionID) -> OriginalTransactionID? {
        let upgraded = (periods[subscription] ?? []).filter(\.isUpgraded)
        guard let replaced = upgraded.max(by: { $0.purchasedAt < $1.purchasedAt }),
            let group = replaced.groupID, let rows = groups[group]
        else { return nil }
        let end = replaced.cancelledAt ?? replaced.purchasedAt
        return rows[rows.firstIndex(startingAt: replaced.purchasedAt)...]
            .first { $0.originalTransactionID != subscription && $0.goesOn(after: end) }?.originalTransactionID
    }
}

extension TransactionRow {
    /// Whether it began, and was under way at an instant or began later.
    fileprivate func goesOn(after instant: Instant) -> Bool {
        let end = expiresAt ?? purchasedAt
        let accessEnd = min(cancelledAt ?? end, end)
        return accessEnd >= purchasedAt && (purchasedAt >= instant || accessEnd > instant)
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
