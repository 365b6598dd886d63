/// A transaction that may pay an order.
package struct PaymentCandidate: Sendable, Hashable {
    /// Why a transaction pays an order, the strongest first.
    package enum Cause: String, Sendable, CaseIterable, Comparable {
        /// It carries the order's `app_account_token`.
        case token
        /// A device sent it for the order, with a proof.
        case proof
        /// A service sent it for the order.
        case order
        /// The owner had ordered the product, and names no order.
        case product

        /// Orders causes, the stronger first.
        package static func < (left: Cause, right: Cause) -> Bool {
            (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
        }
    }

    /// What was bought: a one-time purchase, or a period of a subscription.
    package enum Bought: Sendable, Hashable {
        /// The row of a one-time purchase.
        case purchase(Int64)
        /// The rows of a subscription and of its period.
        case period(Int64, of: Int64)
    }

    /// The order.
    package let orderID: String
    /// When the order was placed.
    package let orderedAt: Instant
    /// Why it may pay.
    package let cause: Cause
    /// What was bought.
    package let bought: Bought
    /// The earliest date that Apple ever stated of the transaction. So a restored copy pays nothing.
    package let purchasedAt: Instant

    /// Creates a candidate.
    package init(orderID: String, orderedAt: Instant, cause: Cause, bought: Bought, purchasedAt: Instant) {
        self.orderID = orderID
        self.orderedAt = orderedAt
        self.cause = cause
        self.bought = bought
        self.purchasedAt = purchasedAt
    }
}

/// Decides which transaction pays which order. Each pays one order at most, and an order is paid once.
///
/// The stronger cause comes first, then the order that was placed first, then the transaction that was made first. The
/// result does not depend on the order of the candidates.
package func matchPayments(_ candidates: [PaymentCandidate]) -> [PaymentCandidate] {
    var (paid, spent): (Set<String>, Set<PaymentCandidate.Bought>) = ([], [])
    let inOrder = candidates.sorted { left, right in
        (left.cause, left.orderedAt, left.orderID, left.purchasedAt, left.bought.place)
            < (right.cause, right.orderedAt, right.orderID, right.purchasedAt, right.bought.place)
    }
    return inOrder.filter { candidate in
        guard !paid.contains(candidate.orderID), spent.insert(candidate.bought).inserted else { return false }
        paid.insert(candidate.orderID)
        return true
    }
}

extension PaymentCandidate.Bought {
    /// The place among candidates that are equal otherwise.
    fileprivate var place: Int64 {
        switch self {
        case .purchase(let id): id
        case .period(let id, _): id
        }
    }
}
