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
        try transaction.query(Queries.writePeriods, PeriodWrite.parameters(rows))
        let aliases = rows.flatMap { row in row.record.transactionIDs.sorted().map { (row, $0) } }
        try transaction.query(
            Queries.insertAliases,
            [.int8s(aliases.map(\.0.id)), .texts(aliases.map(\.1.text))])
    }

    /// Writes every subscription in a verified answer.
    func writeSubscriptions(_ drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        let rows = try drafts.compactMap { draft in try draft.state.map { try SubscriptionWrite(draft, $0) } }
        guard !rows.isEmpty else { return }
        try transaction.query(Queries.writeSubscriptions, SubscriptionWrite.parameters(rows))
        let links = batch.flatMap { settlement in
            settlement.subscriptionKeys.compactMap { key in
                subscriptions[key].map { (settlement.claim.receiptID.number, $0.rowID) }
            }
        }
        try transaction.query(Queries.linkReceipts, [.int8s(links.map(\.0)), .int8s(links.map(\.1))])
    }
}

/// A subscription as a row to write.
struct SubscriptionWrite {
    let draft: SubscriptionDraft
    let state: SubscriptionState
    let renewal: String?
    let suspected: String?
    /// The current flags that belong to no period.
    let flags: String

    init(_ draft: SubscriptionDraft, _ state: SubscriptionState) throws {
        self.draft = draft
        self.state = state
        renewal = try state.facts.renewal.map { try ColumnJSON.text(of: RenewalJSON($0.value)) }
        suspected = try state.suspectedShrink.map { try ColumnJSON.text(of: SuspectedShrinkJSON($0)) }
        flags = state.flagsOfToday
    }

    /// The columns of `write_subscriptions`, in its order.
    static func parameters(_ rows: [SubscriptionWrite]) -> [Parameter] {
        let (drafts, states) = (rows.map(\.draft), rows.map(\.state))
        let facts = states.map(\.facts)
        return [
            .int8s(drafts.map(\.rowID)), .texts(facts.map(\.groupID?.text)),
            .int8s(drafts.map(\.polling.poller?.number)),
            .int8s(drafts.map(\.version)), .instants(states.map(\.asOf)),
            .timestamptzs(drafts.map(\.checkedMicroseconds)),
            .timestamptzs(drafts.map(\.recordedMicroseconds)), .instants(drafts.map(\.polling.nextCheckAt)),
            .jsonbs(rows.map(\.renewal)), .instants(facts.map(\.renewal?.asOf)), .texts(facts.map(\.renewal?.path)),
            .jsonbs(rows.map(\.suspected)), .bools(states.map(\.willRenew)),
            .texts(states.map(\.renewsToProductID?.text)), .texts(rows.map(\.flags)),
            .instants(states.map(\.expiresAt)),
            .instants(states.map(\.headStartsAt)), .instants(states.map(\.startedAt)),
            .int4s(states.map { Int32(clamping: $0.periods) }), .int8s(states.map(\.leeway.milliseconds)),
            .texts(facts.map(\.appAccountToken)), .instants(states.map(\.outageAllowance.accessEndsAt)),
            .bools(states.map(\.outageAllowance.expected)), .int8s(drafts.map(\.answeredBy?.number)),
        ]
    }
}

extension SubscriptionState {
    /// Flags at its clock that belong to no period, separated by commas.
    var flagsOfToday: String {
        (timeline.span(at: asOf)?.flags ?? []).filter { $0 == .changeScheduled || $0 == .priceConsentPending }
            .map(\.rawValue).joined(separator: ",")
    }
}
