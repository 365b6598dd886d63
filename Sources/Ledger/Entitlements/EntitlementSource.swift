import Postgres
import Subscriptions

/// A source of an entitlement at one instant, with its clocks.
struct EntitlementSource: Sendable {
    /// The clocks of a subscription or one-time purchase, in microseconds.
    struct Clocks: Sendable, Hashable {
        let asOf: Int64
        let checkedAt: Int64
    }

    let span: EntitlementSpan
    /// Nil where no answer of Apple is behind the source.
    let clocks: Clocks?

    /// Whether it wins against another source of the same entitlement: the same order as in `ledger.entitlements`.
    func precedes(_ other: EntitlementSource) -> Bool {
        let (mine, its) = (span, other.span)
        if mine.place != its.place { return mine.place < its.place }
        if mine.granted != its.granted { return mine.granted }
        if mine.environment != its.environment { return mine.environment == .production }
        if mine.until != its.until { return isLater(mine.until, its.until) }
        if mine.basis != its.basis { return mine.basis > its.basis }
        if clocks?.checkedAt != other.clocks?.checkedAt { return isLater(clocks?.checkedAt, other.clocks?.checkedAt) }
        if let order = orderInBytes(mine.productID, its.productID) { return order }
        if mine.subscriptionID != its.subscriptionID { return isEarlier(mine.subscriptionID, its.subscriptionID) }
        return isEarlier(mine.purchaseID, its.purchaseID)
    }

    /// Descending with nil first, as in SQL.
    private func isLater(_ mine: Int64?, _ its: Int64?) -> Bool {
        guard let mine else { return its != nil }
        return its.map { mine > $0 } ?? false
    }

    /// Ascending with nil last, as in SQL.
    private func isEarlier(_ mine: Int64?, _ its: Int64?) -> Bool {
        guard let its else { return mine != nil }
        return mine.map { $0 < its } ?? false
    }

    private func orderInBytes(_ mine: String?, _ its: String?) -> Bool? {
        guard let mine, let its else { return mine == nil && its == nil ? nil : mine != nil }
        return mine.utf8.elementsEqual(its.utf8) ? nil : mine.precedesInBytes(its)
    }
}

extension [EntitlementSource] {
    /// The winning source of each entitlement, in the order of their names.
    var winners: [EntitlementSource] {
        guard count > 1 else { return self }
        let sorted = sorted { one, other in
            let (name, its) = (one.span.entitlement, other.span.entitlement)
            return name.utf8.elementsEqual(its.utf8) ? one.precedes(other) : name.precedesInBytes(its)
        }
        return sorted.indices.compactMap { index in
            guard index > 0 else { return sorted[index] }
            let (name, before) = (sorted[index].span.entitlement, sorted[index - 1].span.entitlement)
            return name.utf8.elementsEqual(before.utf8) ? nil : sorted[index]
        }
    }
}

extension String {
    /// Whether it comes before another text byte by byte, as with PostgreSQL's collation "C". Swift's own order takes
    /// two spellings of one text for equal.
    fileprivate func precedesInBytes(_ other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }
}
