import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Writes the result of folding the batch, and gives leases back.
    mutating func write(in transaction: Transaction) throws -> [Settled] {
        let plans = try makePlans()
        let fresh = plans.filter { !isRepeated($0.settlement) }
        let affected = try lockAffectedCustomers(verifying: verifiedFirst(fresh), in: transaction)
        try writeDrafts(in: transaction)
        try writeEndedAllowanceObservations(
            of: endedByAbsence.sorted().compactMap { subscriptions[$0] }, in: transaction)
        let ids = try reserveIDs(observations: fresh.count, periods: 0, in: transaction).observations
        let kept = try keepObservations(of: fresh, ids: ids, in: transaction)
        try writeReceipts(fresh, kept, in: transaction)
        let scheduled = try writeSchedules(fresh, in: transaction)
        let refused = plans.filter(\.endsPolling).map(\.settlement.claim.receiptID)
        try writePolling(scheduled: scheduled, refused: refused, in: transaction)
        try writeNotifications(plans, in: transaction)
        try affected.store(in: transaction)
        try moveOrdersAndDeliveries(in: transaction)
        try payOrders(in: transaction)
        try handOverDue(in: transaction)
        try storeTurns(in: transaction)
        // Last, because the canaries' watch may be using the same rows.
        try writeRefusals(fresh, in: transaction)
        return plans.map(settled(by:))
    }

    /// Returns the receipts that Apple vouches for for the first time.
    private func verifiedFirst(_ plans: [ReceiptPlan]) -> [ReceiptID] {
        plans.map(\.settlement).filter { $0.evidence != nil }.map(\.claim.receiptID)
            .filter { receipts[$0]?.verifiedAt == nil }
    }

    /// Writes the folded subscriptions and purchases, with their owners locked by `lockAffectedCustomers`.
    func writeDrafts(in transaction: Transaction) throws {
        let checked = subscriptions.values.filter(\.wasChecked).sorted { $0.rowID < $1.rowID }
        let periods = checked.flatMap { draft in
            draft.state.map { $0.facts.recordsToWrite(since: draft.stored?.facts) }?.map { (draft, $0) } ?? []
        }
        let ids = try reserveIDs(observations: 0, periods: periods.count { $0.1.id == nil }, in: transaction).periods
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

    /// Moves the orders and deliveries of periods that moved to other subscriptions.
    private func moveOrdersAndDeliveries(in transaction: Transaction) throws {
        let rows = moves.compactMap { move -> (Int64, Int64, String)? in
            guard let from = subscriptions[move.from], let to = subscriptions[move.to],
                let lineItem = move.move.row.webOrderLineItemID
            else { return nil }
            return (from.rowID, to.rowID, lineItem.text)
        }
        guard !rows.isEmpty else { return }
        try transaction.query(
            Queries.moveLineItems, [.int8s(rows.map(\.0)), .int8s(rows.map(\.1)), .texts(rows.map(\.2))])
    }

    private func reserveIDs(
        observations: Int, periods: Int, in transaction: Transaction
    ) throws -> (observations: [Int64], periods: [Int64]) {
        let rows = try transaction.query(
            Queries.reserveIds, [.int4(Int32(clamping: observations)), .int4(Int32(clamping: periods))])
        return try rows.reduce(into: ([], [])) { ids, row in
            let id = try row.int8("id")
            if try row.text("of") == "period" { ids.1.append(id) } else { ids.0.append(id) }
        }
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
        let next: Instant? =
            switch plan.next {
            case .at(let instant): instant
            case .retired: nil
            }
        return Settled(
            receiptID: receipt, outcome: plan.isForgiven ? .indeterminate : settlement.finding.outcome,
            reason: settlement.finding.reason,
            refusal: plan.isForgiven ? nil : settlement.finding.refusal,
            repetition: Settled.Repetition(settlement.finding),
            vouching: settlement.vouching,
            orderIDs: Set(orderReceipts.orders(of: receipt).map(\.orderID)), subscriptions: outcomes,
            purchaseEvents: settlement.purchases.flatMap { purchases[$0.key]?.events.map(\.event) ?? [] },
            nextCheckAt: next)
    }
}

extension Settled.Repetition {
    /// Apple's internal errors.
    private static let appleErrors = 21100...21199

    /// Reads it from what an answer means.
    init(_ finding: Finding) {
        switch finding {
        case .verified: self = .vain
        case .rejected(let refusal): self = refusal.retryable ? .later : .vain
        case .indeterminate(let failure) where !failure.retryable: self = .vain
        case .indeterminate(let failure): self = failure.status.map(Self.appleErrors.contains) ?? false ? .soon : .later
        }
    }
}
