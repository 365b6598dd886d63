/// Tells which subscription a renewal means that does not name one, by the rows of the same answer. Looked through
/// once, and only when somebody asks.
struct KnownSubscriptions {
    private let rows: [TransactionFields]

    /// What `rows` tell.
    init(_ rows: [TransactionFields]) {
        self.rows = rows
    }

    /// The product of the row that ends last, of the subscription `original` or, where none is named, of all.
    mutating func newestProduct(of original: String?) -> String? {
        guard let original else { return rows.max(by: Self.endsBefore)?.productID }
        return newest[original]?.productID
    }

    /// The one subscription with this product; nil when there is none, or several to choose from.
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
