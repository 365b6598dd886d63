/// Determines, from the rows of the same answer, which subscription a renewal without an original transaction id
/// belongs to. The rows are searched once, and only on demand.
struct KnownSubscriptions {
    private let rows: [TransactionFields]

    /// Creates the lookup over `rows`.
    init(_ rows: [TransactionFields]) {
        self.rows = rows
    }

    /// Returns the product of the row that ends last, in the subscription `original` or, if that is nil, in all rows.
    mutating func newestProduct(of original: String?) -> String? {
        guard let original else { return rows.max(by: Self.endsBefore)?.productID }
        return newest[original]?.productID
    }

    /// Returns the one subscription with this product; nil if there is none or more than one.
    mutating func onlySubscription(of product: String) -> String? {
        guard let originals = originals[product], originals.count == 1 else { return nil }
        return originals.first
    }

    private lazy var newest = Dictionary(grouping: rows, by: \.originalTransactionID)
        .compactMapValues { $0.max(by: Self.endsBefore) }

    private lazy var originals = Dictionary(grouping: rows, by: \.productID)
        .mapValues { Set($0.map(\.originalTransactionID)) }

    private static func endsBefore(_ one: TransactionFields, _ other: TransactionFields) -> Bool {
        (one.expiresAt ?? 0, one.purchasedAt) < (other.expiresAt ?? 0, other.purchasedAt)
    }
}
