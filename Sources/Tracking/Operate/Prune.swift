import Postgres
import SQL
package import Subscriptions

/// The result of one batch of a prune, after its commit.
package struct PruneBatch: Sendable {
    /// Receipts with old enough answers.
    package var receipts = 0
    /// Answers that it removed, without those that another prune removed meanwhile.
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
    /// facts. The batch has at most `limit` receipts after `receipt`, which is 0 to begin.
    package func prune(
        after receipt: Int64, before cutoff: Instant, limit: Int = 20, reading read: EvidenceReader
    ) async throws -> PruneBatch {
        let apps = try await appsByID()
        return try await database.transaction { transaction in
            try PruneRun(apps: apps, cutoff: cutoff, read: read).receipts(after: receipt, limit: limit, in: transaction)
        }
    }

    /// Frees the disk space of months before `cutoff` without stored answers, each month in its own transaction; returns
    /// how many. A month that is being read is left for the next time, because workers would wait behind this statement.
    package func dropEmptyMonths(before cutoff: Instant) async throws -> Int {
        var months = 0
        while try await write(Queries.dropEmptyMonths, .instant(cutoff)).first?.int4("months") == 1 { months += 1 }
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
            Queries.findPrunable, .int8(after), .instant(cutoff), .int4(Int32(clamping: limit)))
        let old = try found.reduce(into: [Int64: [Int64]]()) { old, row in
            old[try row.int8("receipt_id"), default: []].append(try row.int8("observation_id"))
        }
        var batch = PruneBatch()
        guard let last = old.keys.max() else { return batch }
        batch.next = last
        batch.receipts = old.count
        let held = try ReplayTargets(transaction.query(Queries.readHeld, .int8s(old.keys.sorted())))
        let replay = try Replay(of: held.allSubscriptions, purchases: held.allPurchases, reading: read, in: transaction)
        var dropped: Set<Int64> = []
        for receipt in old.keys.sorted() {
            let answers = old[receipt] ?? []
            let things = ReplayTargets(of: receipt, among: held)
            guard things.allSubscriptions.allSatisfy({ replay.gap(of: $0) == nil }),
                things.allPurchases.allSatisfy({ replay.gap(of: $0) == nil }),
                let whole = PruneGuard(of: things, replay, run: self)
            else {
                batch.untouched += answers.count
                continue
            }
            let needed = whole.needed(besides: dropped)
            drop(answers.filter { !needed.contains($0) }[...], of: whole, &dropped)
            batch.needed += answers.count { !dropped.contains($0) }
        }
        let deleted = try transaction.query(Queries.deleteObservations, .int8s(dropped.sorted()), .instant(cutoff))
        batch.dropped = Int(try deleted.first?.int8("answers") ?? 0)
        return batch
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
    /// A subscription or purchase that the receipt holds.
    private struct Thing {
        let clocks: Set<Instant>
        /// The answers that report on it, by instant.
        let speakers: [Instant: Set<Int64>]
        /// Whether its facts are the same to the last clock without some answers, so that later answers give the same too.
        let isSame: (Set<Int64>) -> Bool
    }

    private var things: [Thing] = []

    /// Returns nil when something belongs to an unknown app.
    init?(of targets: ReplayTargets, _ replay: Replay, run: PruneRun) {
        for target in targets.allSubscriptions {
            guard let policy = run.apps[target.key.appID]?.policy(for: target.key.environment) else { return nil }
            let whole = replay.state(of: target, policy: policy)
            let thing = Thing(clocks: whole?.facts.clocks ?? [], speakers: replay.speakers(of: target.key)) { dropped in
                haveSameFacts(whole, replay.state(of: target, policy: policy, without: dropped))
            }
            things.append(thing)
        }
        for target in targets.allPurchases {
            guard let policy = run.apps[target.key.appID]?.policy(for: target.key.environment) else { return nil }
            let whole = replay.state(of: target.key, policy: policy)
            let thing = Thing(clocks: whole?.facts.clocks ?? [], speakers: replay.speakers(of: target.key)) { dropped in
                let rest = replay.state(of: target.key, policy: policy, without: dropped)
                return whole?.facts.withoutPaths == rest?.facts.withoutPaths
                    && whole?.refundRetractedAt == rest?.refundRetractedAt
            }
            things.append(thing)
        }
    }

    /// Returns the answers that must stay because no other answer reports one of their facts at its clock.
    /// The last answer about the end of a period is such a case. This saves trying each of them.
    func needed(besides dropped: Set<Int64>) -> Set<Int64> {
        things.reduce(into: []) { needed, thing in
            for clock in thing.clocks {
                let speakers = thing.speakers[clock, default: []].subtracting(dropped)
                if speakers.count == 1 { needed.formUnion(speakers) }
            }
        }
    }

    func isSame(without dropped: Set<Int64>) -> Bool { things.allSatisfy { $0.isSame(dropped) } }
}

/// Whether two states have the same facts and clocks, whatever answers these came from: of equal answers any one will do.
private func haveSameFacts(_ one: SubscriptionState?, _ other: SubscriptionState?) -> Bool {
    guard let one, let other else { return one == nil && other == nil }
    return one.asOf == other.asOf
        && one.facts.records.map(\.withoutPaths) == other.facts.records.map(\.withoutPaths)
        && one.facts.renewal?.value == other.facts.renewal?.value
        && one.facts.renewal?.asOf == other.facts.renewal?.asOf && one.retractions == other.retractions
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
            let (poller, asOf) = (try row.int8IfPresent("polled_by").map { ReceiptID($0) }, try row.instant("as_of"))
            if let rowID = try row.int8IfPresent("subscription_id") {
                let key = SubscriptionRowKey(appID: appID, environment: environment, id: id)
                subscriptions[receipt, default: []].append(
                    Replay.Target(rowID: rowID, key: key, polledBy: poller, asOf: asOf))
            }
            if let rowID = try row.int8IfPresent("purchase_id") {
                let purchase = PurchaseKey(originalTransactionID: id, productID: ProductID(try row.text("product_id")))
                let key = PurchaseRowKey(appID: appID, environment: environment, purchase: purchase)
                purchases[receipt, default: []].append(
                    Replay.PurchaseTarget(rowID: rowID, key: key, polledBy: poller, asOf: asOf))
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

    /// Reduces the texts of notifications that came before `cutoff`, those after the notification `after` (0 to begin). A
    /// rebuild finds the same afterwards.
    package func reduceNotifications(
        after: Int64, before cutoff: Instant, by reducer: SignedReducer
    ) async throws -> ReducedBatch {
        try await database.transaction { transaction in
            let rows = try transaction.query(
                Queries.findReducibleNotifications, .int8(after), .instant(cutoff), .int4(Self.reducedMax))
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
            try transaction.query(Queries.writeReducedNotifications, .int8s(ids), .texts(claims))
            return batch
        }
    }

    /// Reduces the texts in answers of the Server API that were recorded before `cutoff`, those after the observation
    /// `after` (0 to begin).
    package func reduceAnswers(
        after: Int64, before cutoff: Instant, by reducer: SignedReducer
    ) async throws -> ReducedBatch {
        try await database.transaction { transaction in
            let rows = try transaction.query(
                Queries.findReducibleAnswers, .int8(after), .instant(cutoff), .int4(Self.reducedMax))
            var batch = ReducedBatch()
            var (ids, bodies): ([Int64], [[UInt8]]) = ([], [])
            for row in rows {
                let kept = KeptAnswer(
                    observation: try Observation(row: row), bundleID: BundleID(try row.text("bundle_id")),
                    environment: try row.word("environment"), body: try row.bytea("body"))
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
            try transaction.query(Queries.writeReducedAnswers, .int8s(ids), .byteas(bodies), .instant(cutoff))
            return batch
        }
    }
}
