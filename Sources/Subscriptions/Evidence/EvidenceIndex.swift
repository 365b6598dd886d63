/// The rows of an answer, indexed for each use, so that slicing an answer does not take quadratic time in its rows.
struct EvidenceIndex: Sendable {
    /// The rows of periods, by subscription.
    private(set) var periods: [OriginalTransactionID: [TransactionRow]] = [:]
    /// The rows of one-time purchases.
    private(set) var purchases: [PurchaseKey: [TransactionRow]] = [:]
    /// The renewal rows, by subscription, in the answer's order.
    let renewals: [OriginalTransactionID: [RenewalRow]]
    /// The rows of periods that name their group, ordered by start.
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

    /// Files rows without an expiry. Such a row is a one-time purchase, unless the answer shows elsewhere that it is a
    /// period. Then it takes the expiry of the row it repeats, and is ignored if it repeats none.
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

    /// Returns the rows of a group that start at an instant or later.
    func rows(of group: SubscriptionGroupID, startingAt instant: Instant) -> ArraySlice<TransactionRow> {
        let rows = groups[group] ?? []
        return rows[rows.firstIndex(startingAt: instant)...]
    }

    /// Returns the other subscription of the group that took over from the last upgraded row, by the first row that
    /// replaces it: see `replaces`. A row that was itself taken back since still counts as the replacement.
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
    /// How much earlier than the cancellation of the replaced row its replacement may start. Apple writes both at the
    /// same moment, one to the second and the other to the millisecond.
    private static let cancellationTolerance = Delay.minutes(1)

    /// The earliest start of a replacement of this upgraded row: its cancellation, or its start if Apple gives none.
    fileprivate var replaceableFrom: Instant { cancelledAt.map { $0 - Self.cancellationTolerance } ?? purchasedAt }

    /// Returns whether this row replaced an upgraded one: it began, not before that row was replaced, and before that
    /// row would have ended.
    ///
    /// An upgraded row without a cancellation date (the sandbox sends such rows) does not say when it was replaced.
    /// Then only a row of another product with the same payer (both bought, or both shared) replaces it. A row
    /// with the other ownership, or a second subscription of the same product, exists beside it.
    fileprivate func replaces(_ upgraded: TransactionRow) -> Bool {
        let end = expiresAt ?? purchasedAt
        let hasBegun = min(cancelledAt ?? end, end) >= purchasedAt
        guard hasBegun, let upgradedEnd = upgraded.expiresAt, purchasedAt < upgradedEnd,
            purchasedAt >= upgraded.replaceableFrom
        else { return false }
        return upgraded.cancelledAt != nil
            || productID != upgraded.productID
                && (ownership?.isPayer ?? true) == (upgraded.ownership?.isPayer ?? true)
    }
}

extension [TransactionRow] {
    /// Returns the first index with a start at the instant or later, for rows in order of start.
    fileprivate func firstIndex(startingAt instant: Instant) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].purchasedAt < instant { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
