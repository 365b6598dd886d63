/// One period of a subscription, with a separate clock for every fact. `PeriodGrouping` resolves its identity.
package struct Period: Sendable {
    /// The ledger's key; nil while the period is not stored. Ignored by equality; merging keeps the known, smaller one.
    package var id: Int64?
    /// `web_order_line_item_id`; two periods of one subscription never share one.
    package var webOrderLineItemID: WebOrderLineItemID?
    /// Every delivery of the period seen so far.
    package var transactionIDs: Set<TransactionID>
    /// Product, start, end and quantity, from the newest row.
    package var terms: Fact<Terms>
    /// Whether it was taken back; `FactOrigin.unspoken` if only device receipts without a cancellation mentioned it.
    package var revocation: Fact<Revocation>
    /// `is_upgraded`: whether another row replaced it; `FactOrigin.unspoken` in the same case.
    package var upgrade: Fact<Bool>
    /// Optional fields of rows; absence never removes them.
    @Boxed package var details = PeriodDetails()
    /// Apple's information about the renewal that follows the period.
    package var renewal: RenewalFacts?
}

extension Period {
    /// Creates the period of one row; nil for a row without an expiry. `replacedBy` is the other subscription that took
    /// over, if the row is replaced and the answer shows one.
    package init?(row: TransactionRow, replacedBy: OriginalTransactionID? = nil) {
        guard let expiresAt = row.expiresAt else { return nil }
        let origin = FactOrigin(asOf: row.asOf, path: row.path, form: row.expiryForm)
        self.init(
            webOrderLineItemID: row.webOrderLineItemID, transactionIDs: [row.transactionID],
            terms: Fact(
                Terms(
                    productID: row.productID, purchasedAt: row.purchasedAt, expiresAt: expiresAt,
                    quantity: row.quantity), origin: origin),
            revocation: Fact(revocationOf: row), upgrade: Fact(upgradeOf: row),
            details: PeriodDetails(row: row, replacedBy: replacedBy))
    }

    /// The last renewal information about the period's end, with every field from its newest source.
    package var ending: Fact<Renewal>? { renewal?.said }
    /// The instant of the newest row about the period.
    package var asOf: Instant { terms.asOf }
    /// The place of that row in its answer.
    package var path: String { terms.path }
    /// The product.
    package var productID: ProductID { terms.value.productID }
    /// The start of the period.
    package var purchasedAt: Instant { terms.value.purchasedAt }
    /// The end of the paid time, before any grace.
    package var expiresAt: Instant { terms.value.expiresAt }
    /// `cancellation_date`, if it was taken back.
    package var cancelledAt: Instant? { revocation.value.cancelledAt }
    /// Whether another row replaced it.
    package var isUpgraded: Bool { upgrade.value }
    /// Whether it was refunded or revoked, not merely replaced.
    package var isRefunded: Bool { cancelledAt != nil && !isUpgraded }
    /// Whether it is a free trial of who would pay; what another customer pays for is none.
    package var isTrial: Bool { isFree && !isShared }
    /// Whether Apple calls it a free trial, whether or not its customer pays.
    package var isFree: Bool { details.isTrial?.value ?? false }
    /// Whether it has an introductory price.
    package var isIntro: Bool { details.isIntro?.value ?? false }
    /// Whether another customer paid: the row gives access and costs nothing.
    package var isShared: Bool { details.ownership.map { !$0.value.isPayer } ?? false }
    /// The payment of a term; nil outside of one.
    package var payment: Sale.Payment? { details.sale?.value.payment }
    /// Our word for its plan, which is upfront where none is stated; nil where it is not known.
    var planWord: String? { Sale.word(of: details.sale?.value.plan ?? Sale.upfront) }
    /// Whether it is paid month by month.
    package var isMonthly: Bool { details.sale?.value.isMonthly ?? false }
    /// Whether it has seats beside those of another transaction of the same period.
    package var isOneOfSeveral: Bool { details.sale?.value.isOneOfSeveral ?? false }
}

extension Fact<Revocation> {
    /// Creates the revocation that a row states. A signed transaction that was upgraded leaves the date unsaid.
    init(revocationOf row: TransactionRow) {
        let value = Revocation(
            cancelledAt: row.cancelledAt, reason: row.cancelledAt == nil ? nil : row.cancellationReason)
        let speaks =
            switch row.source {
            case .latestReceiptInfo: true
            case .deviceReceipt, .statuses: value != Revocation() || row.isUpgraded
            case .signedText: value != Revocation() || !row.isUpgraded
            }
        let origin = FactOrigin(asOf: row.asOf, path: row.path, form: row.cancellationForm)
        self.init(value, origin: speaks ? origin : .unspoken)
    }
}

extension Fact<Bool> {
    /// Creates the fact whether a row was replaced by another one.
    init(upgradeOf row: TransactionRow) {
        let speaks =
            switch row.source {
            case .latestReceiptInfo, .signedText: true
            case .deviceReceipt, .statuses: row.isUpgraded || row.cancelledAt != nil
            }
        self.init(row.isUpgraded, origin: speaks ? FactOrigin(asOf: row.asOf, path: row.path) : .unspoken)
    }
}

extension Period: Hashable {
    /// Returns whether both state the same, with the same clocks and paths; the ledger's key does not count.
    package static func == (left: Period, right: Period) -> Bool {
        left.webOrderLineItemID == right.webOrderLineItemID && left.transactionIDs == right.transactionIDs
            && left.terms == right.terms && left.revocation == right.revocation && left.upgrade == right.upgrade
            && left.details == right.details && left.renewal == right.renewal
    }

    /// Hashes enough of the parts that equality compares.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(webOrderLineItemID)
        hasher.combine(terms)
    }

    /// Returns whether both state the same, regardless of source and instant: a mere re-confirmation.
    package func sameMeaning(as other: Period) -> Bool {
        webOrderLineItemID == other.webOrderLineItemID && transactionIDs == other.transactionIDs
            && terms.value == other.terms.value && revocation.value == other.revocation.value
            && upgrade.value == other.upgrade.value
            && details.statesSame(as: other.details) && ending?.value == other.ending?.value
            && renewal?.graceEndedAt == other.renewal?.graceEndedAt
            && renewal?.isGraceAssumed == other.renewal?.isGraceAssumed
    }
}

extension Period {
    /// Orders periods canonically: by start, then end, then identifier. Total for the periods of one subscription.
    static func precedes(_ left: Period, _ right: Period) -> Bool {
        if left.purchasedAt != right.purchasedAt { return left.purchasedAt < right.purchasedAt }
        if left.expiresAt != right.expiresAt { return left.expiresAt < right.expiresAt }
        if left.webOrderLineItemID != right.webOrderLineItemID {
            guard let id = left.webOrderLineItemID else { return true }
            return right.webOrderLineItemID.map { id < $0 } ?? false
        }
        if left.productID != right.productID { return left.productID < right.productID }
        return left.transactionIDs.sorted().lexicographicallyPrecedes(right.transactionIDs.sorted())
    }

    /// Returns whether the period ends later, or starts later with the same end.
    func endsAfter(_ other: Period) -> Bool { (expiresAt, purchasedAt) > (other.expiresAt, other.purchasedAt) }

    /// Returns the index of the live period that ends last.
    static func indexOfHead(in periods: [Period]) -> Int? {
        periods.indices.reduce(nil) { known, index in
            periods[index].isUpgraded || periods[index].isRefunded ? known : later(known, index, in: periods)
        }
    }

    /// Returns the index of the period whose end the renewal information describes: the live period that ends last,
    /// unless a refunded one follows it or one that waits for its replacement starts after it; without any of these the
    /// replaced period that starts last. The decision table examines the same period once every known period has begun.
    static func indexOfLast(in periods: [Period]) -> Int? {
        let head = indexOfHead(in: periods)
        let replaced = periods.lastIndex(where: \.isUpgraded)
        let waiting = replaced.flatMap { Replacement.instants(in: periods)[$0] == nil ? $0 : nil }
        func waits(after index: Int?) -> Bool {
            guard let waiting, let index else { return waiting != nil }
            return periods[waiting].purchasedAt > periods[index].purchasedAt
        }
        if let refunded = periods.lastIndex(where: \.isRefunded), periods[refunded].follows(head.map { periods[$0] }) {
            return waits(after: refunded) ? waiting : refunded
        }
        return waits(after: head) ? waiting : head ?? replaced
    }

    /// Returns whether the period comes after every live one, so that its refund decides.
    private func follows(_ head: Period?) -> Bool {
        guard let head else { return true }
        return expiresAt > head.expiresAt && purchasedAt >= head.purchasedAt
    }

    private static func later(_ known: Int?, _ index: Int, in periods: [Period]) -> Int {
        guard let known else { return index }
        return periods[known].endsAfter(periods[index]) ? known : index
    }
}

extension SubscriptionEvidence {
    /// Returns the renewal row about a product: the row of that product, else the row that renews to it, else a row
    /// that will renew, else the first row. The position alone never decides while another criterion fits.
    func renewal(for product: ProductID) -> RenewalRow? {
        renewals.first { $0.renewal.productID == product }
            ?? renewals.first { $0.renewal.renewsToProductID == product }
            ?? renewals.first { $0.renewal.willRenew == true }
            ?? renewals.first
    }
}

/// Decides which rows describe the same period.
///
/// Rows with the same `web_order_line_item_id` do; rows with two different ones never do. A row without one belongs to
/// the period that knows its transaction id, else to the period with the same product and start. Transactions that are
/// several of one period can begin together, so only their ids tell them apart. Grouping considers all rows together. The order in which rows arrive therefore does not matter, as long as the rows of a period agree on
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
            let start = row.isOneOfSeveral ? nil : Start(row)
            let same =
                row.transactionIDs.compactMap { byTransaction[$0] } + [start.flatMap { byStart[$0] }].compactMap(\.self)
            for other in same { parent[root(other)] = root(index) }
            for id in row.transactionIDs { byTransaction[id] = index }
            if let start { byStart[start] = index }
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
                ?? (group.contains(where: \.isOneOfSeveral) ? nil : group.compactMap { byStart[Start($0)] }.min())
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

    /// Returns the index of the period; nil if it is not among them.
    func index(of period: Period) -> Int? {
        if let id = period.webOrderLineItemID { return byIdentifier[id] }
        return period.transactionIDs.compactMap { byTransaction[$0] }.min()
    }
}
