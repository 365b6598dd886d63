import JSON
import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Writes the result of folding the batch, and gives leases back.
    mutating func write(in transaction: Transaction) throws -> [Settled] {
        // Plan: when to ask again, and what a refusal means.
        let plans = try makePlans()
        let fresh = plans.filter { !wasSettledBefore($0.settlement) }
        let affected = try lockAffectedCustomers(verifying: verifiedFirst(fresh), in: transaction)
        // The changes: drafts with their events, and what notifications and uploads get by them.
        try writeDrafts(in: transaction)
        try writeEventsOfEndedProvisionals(of: affected.losingProvisional, in: transaction)
        try writeEndedAllowanceObservations(
            of: endedByAbsence.sorted().compactMap { subscriptions[$0] }, in: transaction)
        // The answers, the receipts and when to ask again.
        let ids = try reserveIDs(observations: fresh.count, in: transaction)
        let kept = try keepObservations(of: fresh, ids: ids, in: transaction)
        try writeReceipts(fresh, kept, in: transaction)
        let scheduled = try writeSchedules(fresh, in: transaction)
        let refused = plans.filter(\.endsPolling).map(\.settlement.claim.receiptID)
        try writePolling(scheduled: scheduled, refused: refused, in: transaction)
        try writeNotifications(plans, in: transaction)
        // What follows in other stories: lookups (`Entitlements`), orders and deliveries (`Orders`).
        try affected.store(in: transaction)
        try moveOrdersAndDeliveries(in: transaction)
        try payOrders(in: transaction)
        try handOverDue(in: transaction)
        try storeTurns(in: transaction)
        // Last, because the canaries' watch may be using the same rows.
        try writeRefusals(fresh, in: transaction)
        return plans.map(settled(by:))
    }

    private func verifiedFirst(_ plans: [ReceiptPlan]) -> [ReceiptID] {
        plans.filter { $0.settlement.evidence != nil }.map(\.settlement.claim.receiptID)
            .filter { receipts[$0]?.verifiedAt == nil }
    }

    /// Writes the folded subscriptions and purchases, with their owners locked by `lockAffectedCustomers`.
    func writeDrafts(in transaction: Transaction) throws {
        let checked = subscriptions.values.filter(\.wasChecked).sorted { $0.rowID < $1.rowID }
        let periods = checked.flatMap { draft in draft.recordsToWrite.map { (draft, $0) } }
        let ids = try reserveIDs(periods: periods.count { $0.1.id == nil }, in: transaction)
        try writePeriods(periods, ids: ids, of: checked, in: transaction)
        try writeSubscriptions(checked, in: transaction)
        try writePurchases(in: transaction)
        try writeTimelines(of: checked, in: transaction)
        try raiseVersions(
            of: subscriptions.values.filter { $0.ownership.isChanged && !$0.wasChecked },
            purchases.values.filter { $0.ownership.isChanged && !$0.wasChecked }, in: transaction)
        try writeEvents(in: transaction)
        try writeOwnerships(in: transaction)
    }

    /// Writes the versions of what changes its owner and nothing else.
    func raiseVersions(of changed: [SubscriptionDraft], _ bought: [PurchaseDraft], in transaction: Transaction) throws {
        guard !changed.isEmpty || !bought.isEmpty else { return }
        try transaction.query(
            Queries.raiseVersions, .int8s(changed.map(\.rowID)), .int8s(changed.map(\.version)),
            .timestamptzs(changed.map(\.recordedMicroseconds)), .int8s(bought.map(\.rowID)),
            .int8s(bought.map(\.version)), .timestamptzs(bought.map(\.recordedMicroseconds)))
    }

    /// Moves the orders and deliveries of periods that moved to other subscriptions.
    private func moveOrdersAndDeliveries(in transaction: Transaction) throws {
        let rows = moves.compactMap { move -> (Int64, Int64, String)? in
            guard let from = subscriptions[move.from], let to = subscriptions[move.to],
                let lineItem = move.move.row.chargeKey
            else { return nil }
            return (from.rowID, to.rowID, lineItem.text)
        }
        guard !rows.isEmpty else { return }
        try transaction.query(
            Queries.moveLineItems, .int8s(rows.map(\.0)), .int8s(rows.map(\.1)), .texts(rows.map(\.2)))
    }

    /// Reserves the ids of new rows of one kind.
    func reserveIDs(observations: Int = 0, periods: Int = 0, in transaction: Transaction) throws -> [Int64] {
        try transaction.query(
            Queries.reserveIds, .int4(Int32(clamping: observations)), .int4(Int32(clamping: periods))
        ).map { try $0.int8("id") }
    }

    private func settled(by plan: ReceiptPlan) -> Settled {
        let settlement = plan.settlement
        let receipt = settlement.claim.receiptID
        let outcomes = settlement.subscriptionKeys.compactMap { key -> Settled.SubscriptionOutcome? in
            guard let draft = subscriptions[key], let state = draft.state, let policy = draft.policy else { return nil }
            return Settled.SubscriptionOutcome(
                id: key.id, environment: key.environment,
                verdict: verdict(of: state.facts, at: state.asOf, policy: policy),
                events: draft.events.map(\.event), ownership: draft.ownership.answers[receipt] ?? [:])
        }
        let next: Instant? = if case .at(let instant) = plan.next { instant } else { nil }
        return Settled(
            receiptID: receipt, outcome: plan.isForgiven ? .indeterminate : settlement.finding.outcome,
            reason: settlement.finding.reason, refusal: plan.isForgiven ? nil : settlement.finding.refusal,
            retry: Settled.Retry(settlement.finding), vouching: settlement.vouching,
            orderIDs: Set(orderReceipts.orders(of: receipt).map(\.orderID)), subscriptions: outcomes,
            purchaseEvents: settlement.purchases.flatMap { purchases[$0.key]?.events.map(\.event) ?? [] },
            nextCheckAt: next)
    }

    func writePeriods(
        _ changed: [(SubscriptionDraft, PeriodRecord)], ids: [Int64], of drafts: [SubscriptionDraft],
        in transaction: Transaction
    ) throws {
        let doubled = drafts.flatMap { draft in
            draft.state?.facts.periodIDsToDelete(since: draft.stored?.facts) ?? []
        }
        if !doubled.isEmpty { try transaction.query(Queries.deletePeriods, .int8s(doubled)) }
        var fresh = ids.makeIterator()
        let rows = changed.compactMap { draft, record in
            (record.id ?? fresh.next()).map {
                PeriodWrite(
                    id: $0, subscriptionID: draft.rowID, recordedMicroseconds: draft.recordedMicroseconds,
                    record: record)
            }
        }
        guard !rows.isEmpty else { return }
        try transaction.query(Queries.writePeriods, rows: rows)
        let aliases = rows.flatMap { row in row.record.transactionIDs.sorted().map { (row, $0) } }
        try transaction.query(Queries.insertAliases, .int8s(aliases.map(\.0.id)), .texts(aliases.map(\.1.text)))
    }

    func writeSubscriptions(_ drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        let rows = drafts.compactMap { draft in draft.state.map { SubscriptionWrite(draft: draft, state: $0) } }
        guard !rows.isEmpty else { return }
        try transaction.query(Queries.writeSubscriptions, rows: rows)
        let links = batch.flatMap { settlement in
            settlement.subscriptionKeys.compactMap { key in
                subscriptions[key].map { (settlement.claim.receiptID.number, $0.rowID) }
            }
        }
        try transaction.query(Queries.linkReceipts, .int8s(links.map(\.0)), .int8s(links.map(\.1)))
    }
}

/// A subscription as a row of `write_subscriptions`.
struct SubscriptionWrite: ColumnarRow {
    let draft: SubscriptionDraft
    let state: SubscriptionState

    static let columns: [Column<SubscriptionWrite>] = [
        .int8("subscription_id", \.draft.rowID),
        .text("group_id", \.state.facts.groupID?.text),
        .int8("polled_by", \.draft.polling.poller?.number),
        .int8("version", \.draft.version),
        .instant("as_of", \.state.asOf),
        .microseconds("checked_at", \.draft.checkedMicroseconds),
        .microseconds("recorded_at", \.draft.recordedMicroseconds),
        .instant("next_check_at", \.draft.polling.nextCheckAt),
        .jsonb("renewal", \.state.facts.renewal?.value.json),
        .instant("renewal_as_of", \.state.facts.renewal?.asOf),
        .text("renewal_path", \.state.facts.renewal?.path),
        .jsonb("suspected") { $0.state.retractions.isEmpty ? nil : .array($0.state.retractions.map(\.json)) },
        .bool("will_renew", \.state.willRenew),
        .text("renews_to_product_id", \.state.renewsToProductID?.text),
        .text("flags", \.state.flagsOfToday),
        .instant("expires_at", \.state.expiresAt),
        .instant("head_starts_at", \.state.headStartsAt),
        .instant("started_at", \.state.startedAt),
        .int4("periods") { Int32(clamping: $0.state.periods) },
        .int8("leeway_ms", \.state.leeway.milliseconds),
        .text("app_account_token", \.state.facts.appAccountToken),
        .instant("access_ends_at", \.state.outageAllowance.accessEndsAt),
        .bool("renewal_expected", \.state.outageAllowance.expected),
        .bool("next_payment", \.state.nextPayment),
        .jsonb("sale", \.state.storedSale),
    ]
}

extension SubscriptionState {
    /// How its newest period is paid, as it is stored; nil where nothing is known of it.
    var storedSale: JSONValue? { sale == SaleStanding() ? JSONValue?.none : sale.json }

    /// Flags at its clock that belong to no period, separated by commas.
    var flagsOfToday: String {
        (timeline.span(at: asOf)?.flags ?? []).filter { $0 == .changeScheduled || $0 == .priceConsentPending }
            .map(\.rawValue).joined(separator: ",")
    }
}

extension SettlementRun {
    func writePurchases(in transaction: Transaction) throws {
        let drafts = purchases.values.filter(\.wasChecked).sorted { $0.rowID < $1.rowID }
        let rows = drafts.compactMap { draft in draft.state.map { PurchaseWrite(draft: draft, state: $0) } }
        guard !rows.isEmpty else { return }
        try transaction.query(Queries.writePurchases, rows: rows)
        let links = batch.flatMap { settlement in
            settlement.purchases.compactMap { key, _ in
                purchases[key].map { (settlement.claim.receiptID.number, $0.rowID) }
            }
        }
        if !links.isEmpty {
            try transaction.query(Queries.linkPurchases, .int8s(links.map(\.0)), .int8s(links.map(\.1)))
        }
    }
}

/// A one-time purchase as a row of `write_purchases`.
struct PurchaseWrite: ColumnarRow {
    let draft: PurchaseDraft
    let state: PurchaseState

    static let columns: [Column<PurchaseWrite>] = [
        .int8("purchase_id", \.draft.rowID),
        .text("transaction_id", \.state.transactionID.text),
        .text("transaction_ids") { $0.state.facts.transactionIDs.sorted().map(\.text).joined(separator: ",") },
        .jsonb("facts", \.state.json),
        .int4("quantity") { Int32(clamping: $0.state.quantity) },
        .instant("purchased_at", \.state.purchasedAt),
        .instant("revoked_at", \.state.revokedAt),
        .text("app_account_token", \.state.facts.appAccountToken?.value),
        .int8("version", \.draft.version),
        .instant("as_of", \.state.asOf),
        .microseconds("recorded_at", \.draft.recordedMicroseconds),
        .int8("polled_by", \.draft.polling.poller?.number),
        .instant("next_check_at", \.draft.polling.nextCheckAt),
    ]
}

extension Settled.Retry {
    private static let appleErrors = 21100...21199

    init(_ finding: Finding) {
        switch finding {
        case .verified: self = .vain
        case .rejected(let refusal): self = refusal.retryable ? .later : .vain
        case .indeterminate(let failure) where !failure.retryable: self = .vain
        case .indeterminate(let failure): self = failure.status.map(Self.appleErrors.contains) ?? false ? .soon : .later
        }
    }
}
