/// Finds, for a row without an expiry, the row of the same answer that tells of the same period with one.
struct RowTwins {
    /// What a period is known by within its subscription.
    private enum Mark: Hashable {
        case lineItem(WebOrderLineItemID)
        case transaction(TransactionID)
        case start(ProductID, Instant)
        case product(ProductID)
    }

    private struct Key: Hashable {
        let subscription: OriginalTransactionID
        let mark: Mark
    }

    private var expiries: [Key: Instant] = [:]

    init(_ periods: [OriginalTransactionID: [TransactionRow]]) {
        for row in periods.values.joined() {
            guard let expiresAt = row.expiresAt else { continue }
            for key in Self.keys(of: row) { expiries[key] = max(expiries[key] ?? expiresAt, expiresAt) }
            expiries[Self.product(of: row)] = expiresAt
        }
    }

    /// The expiry of the row it repeats; nil if it repeats none.
    func expiry(of row: TransactionRow) -> Instant? {
        Self.keys(of: row).lazy.compactMap { expiries[$0] }.first
    }

    /// Whether its product is sold as this subscription, so that it is a period even if nothing tells its expiry.
    func isPeriod(_ row: TransactionRow) -> Bool { expiries[Self.product(of: row)] != nil }

    /// The surest mark first.
    private static func keys(of row: TransactionRow) -> [Key] {
        let marks: [Mark?] = [
            row.webOrderLineItemID.map { .lineItem($0) }, .transaction(row.transactionID),
            .start(row.productID, row.purchasedAt),
        ]
        return marks.compactMap { $0 }.map { Key(subscription: row.originalTransactionID, mark: $0) }
    }

    private static func product(of row: TransactionRow) -> Key {
        Key(subscription: row.originalTransactionID, mark: .product(row.productID))
    }
}
