import Postgres
import SQL
package import Subscriptions

extension LedgerOperations {
    /// Returns how many subscriptions, purchases and customers a rebuild would examine.
    package func rebuildable(_ scope: RebuildScope) async throws -> Int64 {
        try await query(Queries.countRebuildable, .text(scope.app?.text), .text(scope.customer))
            .first?.int8("things") ?? 0
    }

    /// Throws `notFound` when the scope names an app or a customer that there is not.
    package func require(_ scope: RebuildScope) async throws {
        guard let bundleID = scope.app else { return }
        let app = try await ledger.apps.app(bundleID)
        guard let customer = scope.customer else { return }
        try Upload.requireValidCustomerID(customer)
        guard try await !query(Queries.findNamedCustomers, .int4(app.id), .texts([customer])).isEmpty else {
            throw LedgerError(.notFound, "\(bundleID) has no customer \(customer).")
        }
    }

    /// Folds the stored observations of the next `limit` subscriptions or purchases, which stay locked meanwhile, by the
    /// present rules, and compares the result with the stored state.
    ///
    /// With `correcting`, writes each differing one as a new version, under the locks of a settlement. This corrects
    /// what is known from then on; what was known before stays on record, and `ledger.correction` keeps both. It makes
    /// no event, because nothing happened at Apple. It never touches a subscription or purchase whose observations are
    /// incomplete. It may run beside workers, and more than once: correct state stays as it is.
    package func rebuild(
        from place: RebuildPlace, limit: Int = 20, _ scope: RebuildScope, correcting: Bool, reading read: EvidenceReader
    ) async throws -> RebuildBatch {
        let apps = try await appsByID()
        return try await ledger.changingPollers { transaction in
            let run = RebuildRun(apps: apps, scope: scope, limit: limit, correcting: correcting, read: read)
            switch place {
            case .subscriptions(let after): return try run.subscriptions(after: after, in: transaction)
            case .purchases(let after): return try run.purchases(after: after, in: transaction)
            case .entitlements(let after): return try run.entitlements(after: after, in: transaction)
            }
        }
    }
}

/// The part of the ledger to rebuild.
package struct RebuildScope: Sendable {
    /// Only this app; nil for every app.
    package var app: BundleID?
    /// Only the contents of this customer's receipts; nil for every customer.
    package var customer: String?

    package init(app: BundleID? = nil, customer: String? = nil) {
        (self.app, self.customer) = (app, customer)
    }
}

/// The place that a rebuild has reached: first subscriptions, then one-time purchases, then customers, each by their keys.
package enum RebuildPlace: Sendable, Hashable {
    /// After the subscription with this key; 0 to begin.
    case subscriptions(after: Int64)
    /// After the purchase with this key; 0 to begin.
    case purchases(after: Int64)
    /// After the entitlements of the customer with this key; 0 to begin.
    case entitlements(after: Int64)

    package static let start = RebuildPlace.subscriptions(after: 0)
}

/// A stored fact that differs from the observations.
package struct RebuildDifference: Sendable, Hashable {
    /// The subject of the fact, such as `com.example.app Production subscription 1000`.
    package let subject: String
    /// The fact's name, such as `period 17.expires_at`.
    package let fact: String
    /// The stored value; nil for none.
    package let stored: String?
    /// The value that the observations give; nil for none.
    package let rebuilt: String?
}

/// A subscription or purchase that cannot be rebuilt in full and is left as it is.
package struct RebuildGap: Sendable, Hashable {
    /// The subject, as in `RebuildDifference.subject`.
    package let subject: String
    /// Why, in one sentence.
    package let reason: String
}

/// The result of one batch of a rebuild, after its commit.
package struct RebuildBatch: Sendable {
    /// Subscriptions, purchases or customers that were examined.
    package var examined = 0
    /// Those of them that were rewritten.
    package var corrected = 0
    /// The differences, including those that were then corrected.
    package var differences: [RebuildDifference] = []
    /// The subscriptions or purchases left as they are because their observations are incomplete.
    package var gaps: [RebuildGap] = []
    /// Where to continue; nil after the last batch.
    package var next: RebuildPlace?
}

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

    func subscriptions(after: Int64, in transaction: Transaction) throws -> RebuildBatch {
        let ids = try transaction.query(Queries.findSubscriptionsAfter, limits(after: after))
            .map { try $0.int8("subscription_id") }
        guard let last = ids.max() else { return RebuildBatch(next: .purchases(after: 0)) }
        let pollers = try LockedPollers(subscriptions: ids, in: transaction)
        let rows = try transaction.query(Queries.lockRebuiltSubscriptions, .int8s(ids))
        var run = try SettlementRun(locked: rows, pollers: pollers, apps: apps, in: transaction)
        let drafts = Dictionary(run.subscriptions.values.map { ($0.rowID, $0) }) { first, _ in first }
        let replay = try Replay(of: drafts.values.map(\.replayed), purchases: [], reading: read, in: transaction)
        var batch = RebuildBatch(examined: rows.count, next: .subscriptions(after: last))
        var corrections: [Correction] = []
        var corrected: [SubscriptionRowKey] = []
        for row in rows {
            guard let draft = drafts[try row.int8("subscription_id")], let app = apps[draft.key.appID] else { continue }
            let subject = "\(try row.text("bundle_id")) \(draft.key.environment.rawValue) subscription \(draft.key.id)"
            if let gap = replay.gap(of: draft.replayed) {
                batch.gaps.append(RebuildGap(subject: subject, reason: gap))
                continue
            }
            let policy = app.policy(for: draft.key.environment)
            guard let rebuilt = replay.state(of: draft.replayed, policy: policy) else { continue }
            let differences = try FactComparison(
                draft.stored, draft.storedSpans, columns: row, with: rebuilt, outageAllowance: policy.outageAllowance
            ).differences(of: subject)
            guard !differences.isEmpty else { continue }
            batch.differences += differences
            run.subscriptions[draft.key]?.correct(to: rebuilt, policy: policy)
            corrected.append(draft.key)
            corrections.append(
                Correction(
                    subscriptionID: draft.rowID, version: draft.version + 1,
                    recordedMicroseconds: draft.recordedMicroseconds, differences: differences))
        }
        if correcting, !corrections.isEmpty {
            try pollers.foldClocks(in: transaction)
            // A settlement only adds transaction ids, and a corrected period keeps only its own.
            let rewritten = corrected.flatMap { run.subscriptions[$0]?.recordsToWrite.compactMap(\.id) ?? [] }
            try transaction.query(Queries.deleteAliases, .int8s(rewritten))
            try run.writeCorrected(in: transaction)
            try Correction.record(corrections, in: transaction)
            batch.corrected = corrections.count
        }
        return batch
    }

    func purchases(after: Int64, in transaction: Transaction) throws -> RebuildBatch {
        let ids = try transaction.query(Queries.findPurchasesAfter, limits(after: after))
            .map { try $0.int8("purchase_id") }
        guard let last = ids.max() else { return RebuildBatch(next: .entitlements(after: 0)) }
        let pollers = try LockedPollers(purchases: ids, in: transaction)
        let rows = try transaction.query(Queries.lockRebuiltPurchases, .int8s(ids))
        var run = try SettlementRun(locked: [], purchases: rows, pollers: pollers, apps: apps, in: transaction)
        let drafts = Dictionary(run.purchases.values.map { ($0.rowID, $0) }) { first, _ in first }
        let replay = try Replay(of: [], purchases: drafts.values.map(\.replayed), reading: read, in: transaction)
        var batch = RebuildBatch(examined: rows.count, next: .purchases(after: last))
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
            let differences = try FactComparison(draft.stored, columns: row, with: rebuilt).differences(of: subject)
            guard !differences.isEmpty else { continue }
            batch.differences += differences
            run.purchases[key]?.correct(to: rebuilt)
            corrections.append(
                Correction(
                    purchaseID: draft.rowID, version: draft.version + 1,
                    recordedMicroseconds: draft.recordedMicroseconds, differences: differences))
            checked.append((draft.rowID, try row.timestamptzIfPresent("checked_at")))
        }
        if correcting, !corrections.isEmpty {
            try pollers.foldClocks(in: transaction)
            try run.writeCorrected(in: transaction)
            try transaction.query(Queries.storeCheckedAt, .int8s(checked.map(\.0)), .timestamptzs(checked.map(\.1)))
            try Correction.record(corrections, in: transaction)
            batch.corrected = corrections.count
        }
        return batch
    }

    /// Compares what is stored of the next customers' entitlements with what their sources give. A missing row differs
    /// where they give anything.
    func entitlements(after: Int64, in transaction: Transaction) throws -> RebuildBatch {
        let ids = try transaction.query(Queries.findCustomersAfter, limits(after: after))
            .map { try $0.int8("customer_id") }
        guard let last = ids.max() else { return RebuildBatch() }
        _ = try AffectedCustomers(locking: Set(ids.map(CustomerID.init(number:))), in: transaction)
        let differing = try transaction.query(Queries.compareEntitlements, .int8s(ids))
        var batch = RebuildBatch(examined: ids.count, next: .entitlements(after: last))
        batch.differences = try differing.map { row in
            RebuildDifference(
                subject: "\(try row.text("bundle_id")) customer \(try row.text("name"))",
                fact: "entitlement \(try row.text("entitlement"))", stored: try row.textIfPresent("stored"),
                rebuilt: try row.textIfPresent("computed"))
        }
        let wrong = Set(try differing.map { try $0.int8("customer_id") })
        if correcting, !wrong.isEmpty {
            try transaction.query(Queries.storeEntitlements, .int8s(wrong.sorted()))
            batch.corrected = wrong.count
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
            elsewhere: (stored?.facts.periods.compactMap { $0.move(from: key.id) } ?? [])
                + (stored?.statedElsewhere ?? []),
            successors: stored?.facts.successors ?? [:])
    }
}

extension PurchaseDraft {
    /// The target of a replay that rebuilds it.
    var replayed: Replay.PurchaseTarget {
        Replay.PurchaseTarget(
            rowID: rowID, key: key, polledBy: polling.storedPoller, asOf: stored?.asOf ?? .distantPast)
    }
}

/// The changes of a rebuild to one subscription or purchase, as rows of `ledger.correction`.
struct Correction {
    var subscriptionID: Int64?
    var purchaseID: Int64?
    let version: Int64
    let recordedMicroseconds: Int64
    let differences: [RebuildDifference]

    static func record(_ corrections: [Correction], in transaction: Transaction) throws {
        let rows = corrections.flatMap { correction in correction.differences.map { (correction, $0) } }
        try transaction.query(
            Queries.insertCorrections,
            .int8s(rows.map(\.0.subscriptionID)), .int8s(rows.map(\.0.purchaseID)),
            .int8s(rows.map(\.0.version)), .texts(rows.map(\.1.fact)), .texts(rows.map(\.1.stored)),
            .texts(rows.map(\.1.rebuilt)), .timestamptzs(rows.map(\.0.recordedMicroseconds)))
    }
}

extension SubscriptionDraft {
    /// Changes it to the state that the observations give, as a version of its own without events. Its periods keep their keys.
    mutating func correct(to rebuilt: SubscriptionState, policy: Policy) {
        let facts = rebuilt.facts.keepingKeys(of: stored?.facts)
        replace(
            with: SubscriptionState(
                facts: facts, policy: policy, version: version + 1, retractions: rebuilt.retractions),
            policy: policy)
    }
}

extension SubscriptionFacts {
    /// Returns the same facts under the keys that the same periods have in `stored`.
    fileprivate func keepingKeys(of stored: SubscriptionFacts?) -> SubscriptionFacts {
        var free = stored?.periods ?? []
        var periods = periods.map { period in
            var period = period
            period.id = free.takeFirst {
                $0.webOrderLineItemID != nil && $0.webOrderLineItemID == period.webOrderLineItemID
            }
            return period
        }
        for index in periods.indices where periods[index].id == nil {
            let aliases = periods[index].transactionIDs
            periods[index].id = free.takeFirst { !$0.transactionIDs.isDisjoint(with: aliases) }
        }
        return SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: asOf, periods: periods, renewal: renewal)
    }
}

extension [Period] {
    /// Removes the first matching period and returns its key.
    fileprivate mutating func takeFirst(where fits: (Period) -> Bool) -> Int64? {
        firstIndex(where: fits).flatMap { remove(at: $0).id }
    }
}
