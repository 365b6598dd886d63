/// The facts that every row states about its period, taken from one row as a whole.
package struct Terms: Hashable, Sendable, FactValue {
    /// `product_id`.
    package var productID: ProductID
    /// `purchase_date`: the start of the period.
    package var purchasedAt: Instant
    /// `expires_date`: the end of the paid period, before any grace.
    package var expiresAt: Instant
    /// `quantity`.
    package var quantity: Int

    /// Terms from their parts.
    package init(productID: ProductID, purchasedAt: Instant, expiresAt: Instant, quantity: Int = 1) {
        self.productID = productID
        self.purchasedAt = purchasedAt
        self.expiresAt = expiresAt
        self.quantity = quantity
    }

    /// Keeps the later expiry, then the later start, the greater product, the greater quantity.
    package func yields(to other: Terms) -> Bool {
        (expiresAt, purchasedAt, productID, quantity)
            < (other.expiresAt, other.purchasedAt, other.productID, other.quantity)
    }
}

/// Whether and when a period or a purchase was taken back. A row of `latest_receipt_info` and a signed transaction state
/// it. A row of a device receipt states it only with a cancellation, because a device receipt is a frozen snapshot.
package struct Revocation: Hashable, Sendable, FactValue {
    /// `cancellation_date`.
    package var cancelledAt: Instant?
    /// `cancellation_reason`, raw.
    package var reason: String?

    /// Creates a revocation from its parts; without arguments, one that states that nothing was taken back.
    package init(cancelledAt: Instant? = nil, reason: String? = nil) {
        self.cancelledAt = cancelledAt
        self.reason = reason
    }

    /// Keeps a cancellation over none, and the later over the earlier; then the greater reason.
    package func yields(to other: Revocation) -> Bool {
        let (left, right) = (cancelledAt?.milliseconds ?? .min, other.cancelledAt?.milliseconds ?? .min)
        if left != right { return left < right }
        guard let otherReason = other.reason else { return false }
        return reason.map { $0 < otherReason } ?? true
    }
}

/// The price of the whole quantity of a transaction (Apple: "JWSTransactionDecodedPayload").
package struct Price: Hashable, Sendable, FactValue {
    /// `price`, in thousandths of the currency's unit.
    package var milliunits: Int64
    /// `currency`, such as `EUR`.
    package var currency: String

    /// Creates a price from its parts.
    package init(milliunits: Int64, currency: String) {
        self.milliunits = milliunits
        self.currency = currency
    }

    /// Keeps the greater price, then the greater currency.
    package func yields(to other: Price) -> Bool {
        (milliunits, currency) < (other.milliunits, other.currency)
    }
}

extension FactOrigin {
    /// The origin of a fact that no source has stated yet: older than every source.
    package static let unspoken = FactOrigin(asOf: Instant(milliseconds: .min), path: "")
}
