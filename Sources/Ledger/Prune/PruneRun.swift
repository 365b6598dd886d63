import Postgres
import SQL
import Subscriptions

/// One batch of a prune in its transaction: replays with and without the old answers, compares, removes.
struct PruneRun {
    let apps: [Int32: App]
    let cutoff: Instant
    let speedup: Int
    let read: ReadAnswer
    let reconcile: Reconcile

    /// The next receipts with old answers.
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
        let held = try HeldThings(transaction.query(Queries.readHeld, [.int8s(old.keys.sorted())]))
        let replay = try Replay(
            of: held.allSubscriptions, purchases: held.allPurchases, reading: read, in: transaction)
        var dropped: Set<Int64> = []
        for receipt in old.keys.sorted() {
            let answers = old[receipt] ?? []
            let things = HeldThings(of: receipt, among: held)
            guard isWhole(things, replay) else {
                batch.untouched += answers.count
                continue
            }
            drop(answers[...], of: things, replay, &dropped)
            batch.needed += answers.count { !dropped.contains($0) }
        }
        batch.dropped = dropped.count
        try transaction.query(Queries.deleteObservations, [.int8s(dropped.sorted()), .instant(cutoff)])
        return batch
    }

    private func isWhole(_ things: HeldThings, _ replay: Replay) -> Bool {
        things.allSubscriptions.allSatisfy { replay.gap(of: $0) == nil }
            && things.allPurchases.allSatisfy { replay.gap(ofPurchase: $0.rowID, $0.key) == nil }
    }

    /// Drops as many of the answers as nobody needs: all at once, else each half for itself.
    private func drop(
        _ answers: ArraySlice<Int64>, of things: HeldThings, _ replay: Replay, _ dropped: inout Set<Int64>
    ) {
        let without = dropped.union(answers)
        if saysTheSame(of: things, replay, without: without) {
            dropped = without
        } else if answers.count > 1 {
            let middle = answers.startIndex + answers.count / 2
            drop(answers[..<middle], of: things, replay, &dropped)
            drop(answers[middle...], of: things, replay, &dropped)
        }
    }

    /// Whether the facts are the same to the last clock, so that whatever is learnt later finds the same too.
    private func saysTheSame(of things: HeldThings, _ replay: Replay, without dropped: Set<Int64>) -> Bool {
        let subscriptionsAgree = things.allSubscriptions.allSatisfy { target in
            guard let app = apps[target.key.appID] else { return false }
            let policy = app.policy(for: target.key.environment, speedup: speedup)
            let whole = replay.state(of: target, policy: policy, by: reconcile)
            let rest = replay.state(of: target, policy: policy, without: dropped, by: reconcile)
            return whole.map(Said.init) == rest.map(Said.init)
        }
        return subscriptionsAgree
            && things.allPurchases.allSatisfy {
                let (whole, rest) = (replay.state(of: $0.key), replay.state(of: $0.key, without: dropped))
                return whole?.facts.withoutPaths == rest?.facts.withoutPaths
            }
    }
}

/// Everything that is known of a subscription with its clocks, but not in which answer it stood: of equal answers any one
/// will do.
private struct Said: Equatable {
    let asOf: Instant
    let periods: [PeriodRecord]
    let renewal: Renewal?
    let renewalAsOf: Instant?
    let suspected: SuspectedShrink?

    init(_ state: SubscriptionState) {
        asOf = state.asOf
        periods = state.facts.records.map(\.withoutPaths)
        renewal = state.facts.renewal?.value
        renewalAsOf = state.facts.renewal?.asOf
        suspected = state.suspectedShrink
    }
}

extension PurchaseFacts {
    fileprivate var withoutPaths: PurchaseFacts {
        var copy = self
        copy.terms.origin.path = ""
        copy.revocation.origin.path = ""
        copy.ownership?.origin.path = ""
        copy.appAccountToken?.origin.path = ""
        return copy
    }
}
