import Postgres
import SQL
import Subscriptions

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
