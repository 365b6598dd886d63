/// Finds, for a row without an expiry, the row of the same answer that describes the same period with an expiry.
struct RowTwins {
    /// A mark that identifies a period within its subscription.
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

    /// Returns the expiry of the row that this row repeats; nil if it repeats none.
    func expiry(of row: TransactionRow) -> Instant? {
        Self.keys(of: row).lazy.compactMap { expiries[$0] }.first
    }

    /// Returns whether its product is sold as this subscription, so that it is a period even if no row gives its
    /// expiry.
    func isPeriod(_ row: TransactionRow) -> Bool { expiries[Self.product(of: row)] != nil }

    /// Returns the keys of a row, the most reliable mark first.
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
