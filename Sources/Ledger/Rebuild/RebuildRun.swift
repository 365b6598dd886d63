import Postgres
import SQL
import Subscriptions

/// One batch of a rebuild in its transaction: locks, replays, compares, writes.
struct RebuildRun {
    let apps: [Int32: App]
    let scope: RebuildScope
    let limit: Int
    let correcting: Bool
    let read: EvidenceReader

    private func limits(after: Int64) -> [Parameter] {
        [.int8(after), .int4(Int32(clamping: limit)), .text(scope.app?.text), .text(scope.customer)]
    }

    /// Rebuilds the next subscriptions.
    func subscriptions(after: Int64, in transaction: Transaction) throws -> RebuildBatch {
        let ids = try transaction.query(Queries.findSubscriptionsAfter, limits(after: after))
            .map { try $0.int8("subscription_id") }
        guard let last = ids.max() else {
            var done = RebuildBatch()
            done.next = .purchases(after: 0)
            return done
        }
        let pollers = try LockedPollers(subscriptions: ids, in: transaction)
        let rows = try transaction.query(Queries.lockRebuiltSubscriptions, [.int8s(ids)])
        var run = try SettlementRun(locked: rows, pollers: pollers, apps: apps, in: transaction)
        let drafts = Dictionary(run.subscriptions.values.map { ($0.rowID, $0) }) { first, _ in first }
        let replay = try Replay(of: drafts.values.map(\.replayed), purchases: [], reading: read, in: transaction)
        var batch = RebuildBatch()
        batch.examined = rows.count
        batch.next = .subscriptions(after: last)
        var corrections: [Correction] = []
        for row in rows {
            guard let draft = drafts[try row.int8("subscription_id")], let app = apps[draft.key.appID] else { continue }
            let subject = "\(try row.text("bundle_id")) \(draft.key.environment.rawValue) subscription \(draft.key.id)"
            if let gap = replay.gap(of: draft.replayed) {
                batch.gaps.append(RebuildGap(subject: subject, reason: gap))
                continue
            }
            let policy = app.policy(for: draft.key.environment)
            guard let rebuilt = replay.state(of: draft.replayed, policy: policy) else { continue }
            let differences = try FactSnapshot(stored: draft.stored, draft.storedSpans, columns: row).differences(
                from: FactSnapshot(rebuilt: rebuilt, outageAllowance: policy.outageAllowance), of: subject)
            guard !differences.isEmpty else { continue }
            batch.differences += differences
            run.subscriptions[draft.key]?.correct(to: rebuilt, policy: policy)
            corrections.append(Correction(of: draft, differences))
        }
        if correcting, !corrections.isEmpty {
            try pollers.foldClocks(in: transaction)
            try forgetAliases(
                of: corrections.compactMap { correction in
                    correction.subscription.flatMap { run.subscriptions[$0.key] }
                }, in: transaction)
            try run.writeCorrected(in: transaction)
            try Correction.record(corrections, in: transaction)
            batch.corrected = corrections.count
        }
        return batch
    }

    /// Deletes the transaction ids of the periods to rewrite: a settlement only adds ids, and a corrected period keeps
    /// only its own.
    private func forgetAliases(of drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        let rewritten = drafts.flatMap { draft in
            draft.state.map { $0.facts.recordsToWrite(since: draft.stored?.facts).compactMap(\.id) } ?? []
        }
        try transaction.query(Queries.deleteAliases, [.int8s(rewritten)])
    }

    /// Rebuilds the next one-time purchases.
    func purchases(after: Int64, in transaction: Transaction) throws -> RebuildBatch {
        let ids = try transaction.query(Queries.findPurchasesAfter, limits(after: after))
            .map { try $0.int8("purchase_id") }
        guard let last = ids.max() else {
            var done = RebuildBatch()
            done.next = .entitlements(after: 0)
            return done
        }
        let pollers = try LockedPollers(purchases: ids, in: transaction)
        let rows = try transaction.query(Queries.lockRebuiltPurchases, [.int8s(ids)])
        var run = try SettlementRun(
            locked: [], purchases: rows, pollers: pollers, apps: apps, in: transaction)
        let drafts = Dictionary(run.purchases.values.map { ($0.rowID, $0) }) { first, _ in first }
        let replay = try Replay(of: [], purchases: drafts.values.map(\.replayed), reading: read, in: transaction)
        var batch = RebuildBatch()
        batch.examined = rows.count
        batch.next = .purchases(after: last)
        var corrections: [Correction] = []
        var checked: [(Int64, Int64?)] = []
        for row in rows {
            guard let draft = drafts[try row.int8("purchase_id")] else { continue }
            let (key, purchase) = (draft.key, draft.key.purchase)
            let subject =
                "\(try row.text("bundle_id")) \(key.environment.rawValue) purchase "
                + "\(purchase.originalTransactionID) of \(purchase.productID)"
            if let gap = replay.gap(of: draft.replayed) {
                batch.gaps.append(RebuildGap(subject: subject, reason: gap))
                continue
            }
            guard let policy = apps[key.appID]?.policy(for: key.environment),
                let rebuilt = replay.state(of: key, policy: policy)
            else { continue }
            let differences = try FactSnapshot(stored: draft.stored, columns: row).differences(
                from: FactSnapshot(rebuilt: rebuilt), of: subject)
            guard !differences.isEmpty else { continue }
            batch.differences += differences
            run.purchases[key]?.correct(to: rebuilt)
            corrections.append(Correction(of: draft, differences))
            checked.append((draft.rowID, try row.timestamptzIfPresent("checked_at")))
        }
        if correcting, !corrections.isEmpty {
            try pollers.foldClocks(in: transaction)
            try run.writeCorrected(in: transaction)
            try transaction.query(Queries.storeCheckedAt, [.int8s(checked.map(\.0)), .timestamptzs(checked.map(\.1))])
            try Correction.record(corrections, in: transaction)
            batch.corrected = corrections.count
        }
        return batch
    }

    /// Compares what is stored of the next customers' entitlements with what their sources give.
    func entitlements(after: Int64, in transaction: Transaction) throws -> RebuildBatch {
        let ids = try transaction.query(Queries.findStoredEntitlementsAfter, limits(after: after))
            .map { try $0.int8("customer_id") }
        guard let last = ids.max() else { return RebuildBatch() }
        let affected = try AffectedCustomers(locking: Set(ids.map(CustomerID.init(number:))), in: transaction)
        let differing = try transaction.query(Queries.compareEntitlements, [.int8s(ids)])
        var batch = RebuildBatch()
        batch.examined = ids.count
        batch.next = .entitlements(after: last)
        batch.differences = try differing.map { row in
            RebuildDifference(
                subject: "\(try row.text("bundle_id")) customer \(try row.text("name"))",
                fact: "entitlement \(try row.text("entitlement"))", stored: try row.textIfPresent("stored"),
                rebuilt: try row.textIfPresent("computed"))
        }
        if correcting, !differing.isEmpty {
            try affected.store(in: transaction)
            batch.corrected = Set(try differing.map { try $0.int8("customer_id") }).count
        }
        return batch
    }
}

extension SettlementRun {
    /// Writes corrections, and schedules the checks of what was corrected.
    fileprivate mutating func writeCorrected(in transaction: Transaction) throws {
        try planPolling()
        let affected = try lockAffectedCustomers(in: transaction)
        try writeDrafts(in: transaction)
        try writePolling(in: transaction)
        try affected.store(in: transaction)
    }
}

extension SubscriptionDraft {
    /// The target of a replay that rebuilds it.
    var replayed: Replay.Target {
        Replay.Target(
            rowID: rowID, key: key, polledBy: polling.storedPoller, asOf: stored?.asOf ?? .distantPast,
            elsewhere: (stored?.facts.periods.compactMap { $0.move(from: key.id) } ?? []) + (stored?.heldRefunds ?? []))
    }
}

extension PurchaseDraft {
    /// The target of a replay that rebuilds it.
    var replayed: Replay.PurchaseTarget {
        Replay.PurchaseTarget(
            rowID: rowID, key: key, polledBy: polling.storedPoller, asOf: stored?.asOf ?? .distantPast)
    }
}
