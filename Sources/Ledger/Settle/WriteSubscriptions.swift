import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Inserts new periods, rewrites changed ones, and stores their transaction ids.
    func writePeriods(
        _ changed: [(SubscriptionDraft, PeriodRecord)], ids: [Int64], of drafts: [SubscriptionDraft],
        in transaction: Transaction
    ) throws {
        let doubled = drafts.flatMap { draft in
            draft.state?.facts.periodIDsToDelete(since: draft.stored?.facts) ?? []
        }
        if !doubled.isEmpty { try transaction.query(Queries.deletePeriods, [.int8s(doubled)]) }
        var fresh = ids.makeIterator()
        let rows = try changed.compactMap { draft, record in
            try (record.id ?? fresh.next()).map { try PeriodWrite(id: $0, of: draft, record) }
        }
        guard !rows.isEmpty else { return }
        try transaction.query(Queries.writePeriods, rows: rows)
        let aliases = rows.flatMap { row in row.record.transactionIDs.sorted().map { (row, $0) } }
        try transaction.query(
            Queries.insertAliases,
            [.int8s(aliases.map(\.0.id)), .texts(aliases.map(\.1.text))])
    }

    /// Writes every subscription in a verified answer.
    func writeSubscriptions(_ drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        let rows = try drafts.compactMap { draft in try draft.state.map { try SubscriptionWrite(draft, $0) } }
        guard !rows.isEmpty else { return }
        try transaction.query(Queries.writeSubscriptions, rows: rows)
        let links = batch.flatMap { settlement in
            settlement.subscriptionKeys.compactMap { key in
                subscriptions[key].map { (settlement.claim.receiptID.number, $0.rowID) }
            }
        }
        try transaction.query(Queries.linkReceipts, [.int8s(links.map(\.0)), .int8s(links.map(\.1))])
    }
}

/// A subscription as a row of `write_subscriptions`.
struct SubscriptionWrite {
    let draft: SubscriptionDraft
    let state: SubscriptionState
    let renewal: String?
    let suspected: String?
    /// The current flags that belong to no period.
    let flags: String
    let sale: String?

    init(_ draft: SubscriptionDraft, _ state: SubscriptionState) throws {
        self.draft = draft
        self.state = state
        renewal = try state.facts.renewal.map { try ColumnJSON.text(of: RenewalJSON($0.value)) }
        suspected =
            state.retractions.isEmpty
            ? nil : try ColumnJSON.text(of: state.retractions.map(RetractionJSON.init))
        flags = state.flagsOfToday
        sale = try state.storedSale
    }
}

extension SubscriptionWrite: ColumnarRow {
    static let columns: [Column<SubscriptionWrite>] = [
        .int8("subscription_id", \.draft.rowID),
        .text("group_id", \.state.facts.groupID?.text),
        .int8("polled_by", \.draft.polling.poller?.number),
        .int8("version", \.draft.version),
        .instant("as_of", \.state.asOf),
        .microseconds("checked_at", \.draft.checkedMicroseconds),
        .microseconds("recorded_at", \.draft.recordedMicroseconds),
        .instant("next_check_at", \.draft.polling.nextCheckAt),
        .jsonb("renewal", \.renewal),
        .instant("renewal_as_of", \.state.facts.renewal?.asOf),
        .text("renewal_path", \.state.facts.renewal?.path),
        .jsonb("suspected", \.suspected),
        .bool("will_renew", \.state.willRenew),
        .text("renews_to_product_id", \.state.renewsToProductID?.text),
        .text("flags", \.flags),
        .instant("expires_at", \.state.expiresAt),
        .instant("head_starts_at", \.state.headStartsAt),
        .instant("started_at", \.state.startedAt),
        .int4("periods") { Int32(clamping: $0.state.periods) },
        .int8("leeway_ms", \.state.leeway.milliseconds),
        .text("app_account_token", \.state.facts.appAccountToken),
        .instant("access_ends_at", \.state.outageAllowance.accessEndsAt),
        .bool("renewal_expected", \.state.outageAllowance.expected),
        .bool("next_payment", \.state.nextPayment),
        .jsonb("sale", \.sale),
    ]
}

extension SubscriptionState {
    /// How its newest period is paid, as it is stored; nil where nothing is known of it.
    var storedSale: String? {
        get throws { sale == SaleStanding() ? nil : try ColumnJSON.text(of: SaleJSON(sale)) }
    }

    /// Flags at its clock that belong to no period, separated by commas.
    var flagsOfToday: String {
        (timeline.span(at: asOf)?.flags ?? []).filter { $0 == .changeScheduled || $0 == .priceConsentPending }
            .map(\.rawValue).joined(separator: ",")
    }
}
