/// Decides which rows describe the same period.
///
/// Rows with the same `web_order_line_item_id` do; rows with two different ones never do. A row without one belongs to
/// the period that knows its transaction id, else to the period with the same product and start. Grouping considers all
/// rows together. The order in which rows arrive therefore does not matter, as long as the rows of a period agree on
/// product and start, and a row without identifier fits only one period. If it fits several, the one with the smallest
/// identifier takes it.
enum PeriodGrouping {
    /// Returns the rows merged into periods, in canonical order.
    static func grouped(_ rows: [Period]) -> [Period] {
        var numbered: [WebOrderLineItemID: Period] = [:]
        var unnumbered: [Period] = []
        for row in rows {
            guard let id = row.webOrderLineItemID else {
                unnumbered.append(row)
                continue
            }
            numbered[id] = numbered[id]?.merging(row) ?? row
        }
        guard !unnumbered.isEmpty else { return numbered.values.sorted(by: Period.precedes) }
        var rest: [Period] = []
        let index = Index(numbered)
        for group in connected(unnumbered) {
            let merged = group.dropFirst().reduce(group[0]) { $0.merging($1) }
            if let id = index.home(of: group) {
                numbered[id] = numbered[id]?.merging(merged)
            } else {
                rest.append(merged)
            }
        }
        return (numbered.values + rest).sorted(by: Period.precedes)
    }

    /// Groups rows without identifier that share a transaction, or product and start, directly or through other rows.
    private static func connected(_ rows: [Period]) -> [[Period]] {
        var parent = Array(rows.indices)
        func root(_ index: Int) -> Int {
            var current = index
            while parent[current] != current {
                parent[current] = parent[parent[current]]
                current = parent[current]
            }
            return current
        }
        var byTransaction: [TransactionID: Int] = [:]
        var byStart: [Start: Int] = [:]
        for (index, row) in rows.enumerated() {
            for known in row.transactionIDs.compactMap({ byTransaction[$0] }) + [byStart[Start(row)]].compactMap({ $0 })
            {
                parent[root(known)] = root(index)
            }
            for id in row.transactionIDs { byTransaction[id] = index }
            byStart[Start(row)] = index
        }
        return Dictionary(grouping: rows.indices, by: root).values.map { members in members.map { rows[$0] } }
    }

    /// Finds periods that have an identifier.
    private struct Index {
        var byTransaction: [TransactionID: WebOrderLineItemID] = [:]
        var byStart: [Start: WebOrderLineItemID] = [:]

        init(_ periods: [WebOrderLineItemID: Period]) {
            for (id, period) in periods {
                byStart[Start(period)] = min(byStart[Start(period)] ?? id, id)
                for transaction in period.transactionIDs {
                    byTransaction[transaction] = min(byTransaction[transaction] ?? id, id)
                }
            }
        }

        func home(of group: [Period]) -> WebOrderLineItemID? {
            group.flatMap(\.transactionIDs).compactMap { byTransaction[$0] }.min()
                ?? group.compactMap { byStart[Start($0)] }.min()
        }
    }

    /// Product and start together.
    private struct Start: Hashable {
        let productID: ProductID
        let purchasedAt: Instant

        init(_ period: Period) {
            productID = period.productID
            purchasedAt = period.purchasedAt
        }
    }
}

extension Period {
    /// Merges two descriptions of the same period.
    func merging(_ other: Period) -> Period {
        Period(
            id: id.map { min($0, other.id ?? $0) } ?? other.id,
            webOrderLineItemID: webOrderLineItemID ?? other.webOrderLineItemID,
            transactionIDs: transactionIDs.union(other.transactionIDs), terms: terms.merging(other.terms),
            revocation: revocation.merging(other.revocation), upgrade: upgrade.merging(other.upgrade),
            details: details.merging(other.details),
            renewal: merged(renewal, other.renewal))
    }
}

/// Finds a previously known period among the current periods, in which it may have been merged with others.
struct PeriodMatch {
    private var byIdentifier: [WebOrderLineItemID: Int] = [:]
    private var byTransaction: [TransactionID: Int] = [:]

    init(_ periods: [Period]) {
        for (index, period) in periods.enumerated() {
            if let id = period.webOrderLineItemID { byIdentifier[id] = index }
            for id in period.transactionIDs where byTransaction[id] == nil { byTransaction[id] = index }
        }
    }

    /// Returns the index of the period with a transaction; nil if none has it.
    func index(ofTransaction id: TransactionID) -> Int? { byTransaction[id] }

    /// Returns the index of the period; nil if it is not among them.
    func index(of period: Period) -> Int? {
        if let id = period.webOrderLineItemID { return byIdentifier[id] }
        return period.transactionIDs.compactMap { byTransaction[$0] }.min()
    }
}
