import Postgres
import SQL
package import Subscriptions

/// The result of one batch of a prune, after its commit.
package struct PruneBatch: Sendable {
    /// Receipts with old enough answers.
    package var receipts = 0
    /// Answers that were removed.
    package var dropped = 0
    /// Old answers that are kept, because something stored depends on them.
    package var needed = 0
    /// Old answers that are kept, because their receipt cannot be rebuilt in full anyway.
    package var untouched = 0
    /// The receipt after which to continue; nil after the last batch.
    package var next: Int64?

    package init() {}

    /// Adds the result of another batch.
    package mutating func add(_ other: PruneBatch) {
        receipts += other.receipts
        dropped += other.dropped
        needed += other.needed
        untouched += other.untouched
    }
}

extension LedgerOperations {
    /// Removes answers recorded before `cutoff` that nothing depends on. It folds the contents of their receipt once
    /// with them and once without, and removes them only when both results are the same to the last clock. A later
    /// rebuild therefore still gives everything that it gives now.
    ///
    /// It always keeps the newest answer of each receipt, the observations of silence, and everything about receipts
    /// that cannot be rebuilt in full. It may run beside workers, because an answer that comes meanwhile only adds
    /// facts.
    ///
    /// - Parameters:
    ///   - receipt: The receipt after which to continue; 0 to begin.
    ///   - limit: The most receipts in the batch.
    package func prune(
        after receipt: Int64, before cutoff: Instant, limit: Int = 20, reading read: EvidenceReader
    ) async throws -> PruneBatch {
        let apps = Dictionary(try await ledger.apps.all().map { ($0.id, $0) }) { first, _ in first }
        return try await database.transaction { transaction in
            let run = PruneRun(apps: apps, cutoff: cutoff, read: read)
            return try run.receipts(after: receipt, limit: limit, in: transaction)
        }
    }

    /// Frees the disk space of months before `cutoff` without stored answers, each month in its own transaction;
    /// returns how many. A month that is being read is left for the next time, because workers would wait behind this
    /// statement.
    package func dropEmptyMonths(before cutoff: Instant) async throws -> Int {
        var months = 0
        while try await write(Queries.dropEmptyMonths, [.instant(cutoff)]).first?.int4("months") == 1 { months += 1 }
        return months
    }

    /// Removes audit rows written before `cutoff`, and support calls sent before it; returns how many.
    package func pruneAudit(before cutoff: Instant) async throws -> Int {
        let calls = try await remove(Queries.deleteSupportCalls, before: cutoff)
        return try await remove(Queries.deleteAudit, before: cutoff) + calls
    }

    private func remove(_ file: SQLFile, before cutoff: Instant) async throws -> Int {
        var removed = 0
        while true {
            let rows = try await database.transaction { transaction in
                try transaction.execute(Statement(file), [.instant(cutoff), .int4(Int32(auditRowsMax))])
            }
            removed += rows
            guard rows == auditRowsMax else { return removed }
        }
    }
}

/// The most rows to remove in one transaction.
private let auditRowsMax = 10_000

/// One batch of a prune in its transaction: replays with and without the old answers, compares, removes.
struct PruneRun {
    let apps: [Int32: App]
    let cutoff: Instant
    let read: EvidenceReader

    /// Prunes the next receipts with old answers.
    func receipts(after: Int64, limit: Int, in transaction: Transaction) throws -> PruneBatch {
        let found = try transaction.query(
            Queries.findPrunable, [.int8(after), .instant(cutoff), .int4(Int32(clamping: limit))])
        let old = Dictionary(grouping: try found.map { (try $0.int8("receipt_id"), try $0.int8("observation_id")) }) {
            $0.0
        }.mapValues { $0.map(\.1) }
        var batch = PruneBatch()
        guard let last = old.keys.max() else { return batch }
        batch.next = last
        batch.receipts = old.count
        let held = try ReplayTargets(transaction.query(Queries.readHeld, [.int8s(old.keys.sorted())]))
        let replay = try Replay(
            of: held.allSubscriptions, purchases: held.allPurchases, reading: read, in: transaction)
        var dropped: Set<Int64> = []
        for receipt in old.keys.sorted() {
            let answers = old[receipt] ?? []
            let things = ReplayTargets(of: receipt, among: held)
            guard isWhole(things, replay), let whole = PruneGuard(of: things, replay, run: self) else {
                batch.untouched += answers.count
                continue
            }
            let needed = whole.needed(besides: dropped)
            drop(answers.filter { !needed.contains($0) }[...], of: whole, &dropped)
            batch.needed += answers.count { !dropped.contains($0) }
        }
        batch.dropped = dropped.count
        try transaction.query(Queries.deleteObservations, [.int8s(dropped.sorted()), .instant(cutoff)])
        return batch
    }

    private func isWhole(_ things: ReplayTargets, _ replay: Replay) -> Bool {
        things.allSubscriptions.allSatisfy { replay.gap(of: $0) == nil }
            && things.allPurchases.allSatisfy { replay.gap(of: $0) == nil }
    }

    /// Drops as many of the answers as are not needed: all at once, else each half on its own.
    private func drop(_ answers: ArraySlice<Int64>, of whole: PruneGuard, _ dropped: inout Set<Int64>) {
        guard !answers.isEmpty else { return }
        let without = dropped.union(answers)
        if whole.isSame(without: without) {
            dropped = without
        } else if answers.count > 1 {
            let middle = answers.startIndex + answers.count / 2
            drop(answers[..<middle], of: whole, &dropped)
            drop(answers[middle...], of: whole, &dropped)
        }
    }
}

/// The contents of a receipt from all its answers, which must be the same without some of them.
struct PruneGuard {
    private let replay: Replay
    private let subscriptions: [(target: Replay.Target, policy: Policy, state: SubscriptionState?)]
    private let purchases: [(target: Replay.PurchaseTarget, policy: Policy, state: PurchaseState?)]

    /// Returns nil when a subscription belongs to an unknown app.
    init?(of things: ReplayTargets, _ replay: Replay, run: PruneRun) {
        var subscriptions: [(target: Replay.Target, policy: Policy, state: SubscriptionState?)] = []
        for target in things.allSubscriptions {
            guard let app = run.apps[target.key.appID] else { return nil }
            let policy = app.policy(for: target.key.environment)
            subscriptions.append((target, policy, replay.state(of: target, policy: policy)))
        }
        self.replay = replay
        self.subscriptions = subscriptions
        var purchases: [(target: Replay.PurchaseTarget, policy: Policy, state: PurchaseState?)] = []
        for target in things.allPurchases {
            guard let app = run.apps[target.key.appID] else { return nil }
            let policy = app.policy(for: target.key.environment)
            purchases.append((target, policy, replay.state(of: target.key, policy: policy)))
        }
        self.purchases = purchases
    }

    /// Returns the answers that must stay because no other answer reports one of their facts at its clock.
    /// The last answer about the end of a period is such a case. This saves trying each of them.
    func needed(besides dropped: Set<Int64>) -> Set<Int64> {
        let subscribed = subscriptions.map { ($0.state?.facts.clocks ?? [], replay.speakers(of: $0.target.key)) }
        let bought = purchases.map { ($0.state?.facts.clocks ?? [], replay.speakers(of: $0.target.key)) }
        return (subscribed + bought).reduce(into: []) { needed, thing in
            for clock in thing.0 {
                let speakers = thing.1[clock, default: []].subtracting(dropped)
                if speakers.count == 1 { needed.formUnion(speakers) }
            }
        }
    }

    /// Whether the facts are the same to the last clock, so that later answers give the same result too.
    func isSame(without dropped: Set<Int64>) -> Bool {
        let subscriptionsAgree = subscriptions.allSatisfy { whole in
            let rest = replay.state(of: whole.target, policy: whole.policy, without: dropped)
            return whole.state.map(KnownFacts.init) == rest.map(KnownFacts.init)
        }
        return subscriptionsAgree
            && purchases.allSatisfy { whole in
                let rest = replay.state(of: whole.target.key, policy: whole.policy, without: dropped)
                return whole.state?.facts.withoutPaths == rest?.facts.withoutPaths
                    && whole.state?.refundRetractedAt == rest?.refundRetractedAt
            }
    }
}

/// Everything known about a subscription with its clocks, but without the answer it came from: of equal answers any one
/// will do.
private struct KnownFacts: Equatable {
    let asOf: Instant
    let periods: [PeriodRecord]
    let renewal: Renewal?
    let renewalAsOf: Instant?
    let retractions: [Retraction]

    init(_ state: SubscriptionState) {
        asOf = state.asOf
        periods = state.facts.records.map(\.withoutPaths)
        renewal = state.facts.renewal?.value
        renewalAsOf = state.facts.renewal?.asOf
        retractions = state.retractions
    }
}

extension PurchaseFacts {
    /// The same with every path emptied, because rows change places in every answer.
    var withoutPaths: PurchaseFacts {
        var copy = self
        copy.terms.origin.path = ""
        copy.revocation.origin.path = ""
        copy.ownership?.origin.path = ""
        copy.appAccountToken?.origin.path = ""
        copy.price?.origin.path = ""
        copy.revocationPercentage?.origin.path = ""
        copy.refundShown?.origin.path = ""
        return copy
    }
}

/// The contents of receipts, as targets of a replay.
struct ReplayTargets {
    private var subscriptions: [Int64: [Replay.Target]] = [:]
    private var purchases: [Int64: [Replay.PurchaseTarget]] = [:]

    init(_ rows: [Row]) throws {
        for row in rows {
            let receipt = try row.int8("receipt_id")
            let (appID, environment) = (try row.int4("app_id"), try row.word("environment") as StoreEnvironment)
            let id = OriginalTransactionID(try row.text("original_transaction_id"))
            if let rowID = try row.int8IfPresent("subscription_id") {
                subscriptions[receipt, default: []].append(
                    Replay.Target(
                        rowID: rowID, key: SubscriptionRowKey(appID: appID, environment: environment, id: id),
                        polledBy: try row.int8IfPresent("polled_by").map { ReceiptID($0) },
                        asOf: try row.instant("as_of")))
            }
            if let rowID = try row.int8IfPresent("purchase_id") {
                let key = PurchaseKey(originalTransactionID: id, productID: ProductID(try row.text("product_id")))
                purchases[receipt, default: []].append(
                    Replay.PurchaseTarget(
                        rowID: rowID, key: PurchaseRowKey(appID: appID, environment: environment, purchase: key),
                        polledBy: try row.int8IfPresent("polled_by").map { ReceiptID($0) },
                        asOf: try row.instant("as_of")))
            }
        }
    }

    /// Takes the contents of one of the receipts.
    init(of receipt: Int64, among all: ReplayTargets) {
        subscriptions[receipt] = all.subscriptions[receipt]
        purchases[receipt] = all.purchases[receipt]
    }

    /// Every subscription once.
    var allSubscriptions: [Replay.Target] {
        Dictionary(subscriptions.values.joined().map { ($0.rowID, $0) }) { first, _ in first }.values
            .sorted { $0.rowID < $1.rowID }
    }

    /// Every purchase once.
    var allPurchases: [Replay.PurchaseTarget] {
        Dictionary(purchases.values.joined().map { ($0.rowID, $0) }) { first, _ in first }.values
            .sorted { $0.rowID < $1.rowID }
    }
}

/// Reduces signed texts to their claims, without what must go. Each function returns nil where the rest would say something else.
package struct SignedReducer: Sendable {
    let notification: @Sendable (KeptNotification) -> String?
    let answer: @Sendable (KeptAnswer) -> [UInt8]?
}

/// The result of one batch of reductions, after its commit.
package struct ReducedBatch: Sendable {
    /// Notifications or answers whose texts were reduced.
    package var reduced = 0
    /// Those that stay as they are, because the rest would say something else.
    package var untouched = 0
    /// The bytes of what was reduced, before and after.
    package var bytes: (before: Int, after: Int) = (0, 0)
    /// The number after which to continue; nil after the last batch.
    package var next: Int64?

    package init() {}

    /// Adds the result of another batch.
    package mutating func add(_ other: ReducedBatch) {
        reduced += other.reduced
        untouched += other.untouched
        bytes.before += other.bytes.before
        bytes.after += other.bytes.after
    }
}

extension LedgerOperations {
    /// The most notifications or answers that one transaction reduces.
    private static let reducedMax: Int32 = 200

    /// Reduces the texts of notifications that came before `cutoff`: a rebuild finds the same afterwards.
    ///
    /// - Parameter after: The notification after which to continue; 0 to begin.
    package func reduceNotifications(
        after: Int64, before cutoff: Instant, by reducer: SignedReducer
    ) async throws -> ReducedBatch {
        try await database.transaction { transaction in
            let rows = try transaction.query(
                Queries.findReducibleNotifications, [.int8(after), .instant(cutoff), .int4(Self.reducedMax)])
            var batch = ReducedBatch()
            var (ids, claims): ([Int64], [String]) = ([], [])
            for row in rows {
                let kept = try KeptNotification(row: row)
                batch.next = kept.id
                guard let left = reducer.notification(kept) else {
                    batch.untouched += 1
                    continue
                }
                batch.bytes.before += kept.texts?.count ?? 0
                batch.bytes.after += left.utf8.count
                ids.append(kept.id)
                claims.append(left)
            }
            batch.reduced = ids.count
            try transaction.query(Queries.writeReducedNotifications, [.int8s(ids), .texts(claims)])
            return batch
        }
    }

    /// Reduces the texts in answers of the Server API that were recorded before `cutoff`.
    ///
    /// - Parameter after: The observation after which to continue; 0 to begin.
    package func reduceAnswers(
        after: Int64, before cutoff: Instant, by reducer: SignedReducer
    ) async throws -> ReducedBatch {
        try await database.transaction { transaction in
            let rows = try transaction.query(
                Queries.findReducibleAnswers, [.int8(after), .instant(cutoff), .int4(Self.reducedMax)])
            var batch = ReducedBatch()
            var (ids, bodies): ([Int64], [[UInt8]]) = ([], [])
            for row in rows {
                let kept = KeptAnswer(
                    observation: Observation(
                        id: try row.int8("observation_id"), receiptID: ReceiptID(try row.int8("receipt_id")),
                        firstAsOf: try row.instant("first_as_of"), lastAsOf: try row.instant("last_as_of")),
                    bundleID: BundleID(try row.text("bundle_id")), environment: try row.word("environment"),
                    body: try row.bytea("body"))
                batch.next = kept.observation.id
                guard let left = reducer.answer(kept) else {
                    batch.untouched += 1
                    continue
                }
                batch.bytes.before += kept.body.count
                batch.bytes.after += left.count
                ids.append(kept.observation.id)
                bodies.append(left)
            }
            batch.reduced = ids.count
            try transaction.query(Queries.writeReducedAnswers, [.int8s(ids), .byteas(bodies), .instant(cutoff)])
            return batch
        }
    }
}
