/// One period of a subscription, with a separate clock for every fact.
///
/// Its identity is resolved, not computed: see `PeriodGrouping`.
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
    package var details: PeriodDetails
    /// Apple's information about the renewal that follows the period.
    package var renewal: RenewalFacts?

    /// Creates a period from its parts.
    package init(
        id: Int64? = nil, webOrderLineItemID: WebOrderLineItemID?, transactionIDs: Set<TransactionID>,
        terms: Fact<Terms>, revocation: Fact<Revocation>, upgrade: Fact<Bool>,
        details: PeriodDetails = PeriodDetails(), renewal: RenewalFacts? = nil
    ) {
        self.id = id
        self.webOrderLineItemID = webOrderLineItemID
        self.transactionIDs = transactionIDs
        self.terms = terms
        self.revocation = revocation
        self.upgrade = upgrade
        self.details = details
        self.renewal = renewal
    }

    /// Creates the period of one row; nil for a row without an expiry.
    ///
    /// `replacedBy` is the other subscription that took over, if the row is replaced and the answer shows one.
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
    /// Whether it is a free trial.
    package var isTrial: Bool { details.isTrial?.value ?? false }
    /// Whether it has an introductory price.
    package var isIntro: Bool { details.isIntro?.value ?? false }
    /// Whether another customer paid: the row gives access and costs nothing.
    package var isShared: Bool { details.ownership.map { !$0.value.isPayer } ?? false }
    /// The payment of a term; nil outside of one.
    package var payment: Sale.Payment? { details.sale?.value.payment }
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
            && details.sameMeaning(as: other.details) && ending?.value == other.ending?.value
            && renewal?.gaveUpAt == other.renewal?.gaveUpAt
            && renewal?.graceByStatusEndedAt == other.renewal?.graceByStatusEndedAt
    }
}
