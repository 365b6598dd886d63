import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Writes which receipts are asked about what, and moves the schedules that this transaction has not set already.
    ///
    /// A receipt that takes over is due at once. `refused` are the receipts that Apple refused for the last time.
    func writePolling(
        scheduled: Set<ReceiptID> = [], refused: [ReceiptID] = [], in transaction: Transaction
    ) throws {
        try writeUnchecked(in: transaction)
        try forgetFingerprints(scheduled: scheduled, in: transaction)
        try markOmissions(in: transaction)
        let turns = pollingTurns().filter { !scheduled.contains($0.key) }.sorted { $0.key < $1.key }
        if !turns.isEmpty {
            try transaction.query(
                Queries.cover,
                [
                    .int8s(turns.map(\.key.number)), .instants(turns.map(\.value.dueAt)),
                    .texts(turns.map(\.value.lane.rawValue)),
                    .int8s(turns.filter(\.value.isHandedOver).map(\.key.number)),
                ])
        }
        try moveFollowUps(in: transaction)
        try endQuestions(refused: refused, in: transaction)
        try retireOwnerless(in: transaction)
    }

    /// Takes the receipts that no customer sent out of the schedule once other receipts poll all that they polled.
    private func retireOwnerless(in transaction: Transaction) throws {
        let polled = subscriptions.values.map(\.polling) + purchases.values.map(\.polling)
        let replaced = Set(polled.filter { $0.poller != $0.storedPoller }.compactMap(\.storedPoller))
            .filter { receipts[$0]?.sender == ReceiptSender.none }
        guard !replaced.isEmpty else { return }
        try transaction.query(Queries.retireOwnerless, [.int8s(replaced.map(\.number).sorted())])
    }

    /// Ends the questions of notifications about what no receipt polls any more.
    private func endQuestions(refused: [ReceiptID], in transaction: Transaction) throws {
        func isLeft(_ polling: PollingDraft) -> Bool { polling.storedPoller != nil && polling.poller == nil }
        let kept = subscriptions.values.filter { isLeft($0.polling) }.map(\.rowID)
        let bought = purchases.values.filter { isLeft($0.polling) }.map(\.rowID)
        guard !kept.isEmpty || !bought.isEmpty || !refused.isEmpty else { return }
        try transaction.query(
            Queries.endQuestions, [.int8s(kept), .int8s(bought), .int8s(refused.map(\.number))])
    }

    /// Has the receipts that took over go on with the follow-ups of those before.
    private func moveFollowUps(in transaction: Transaction) throws {
        let polled = subscriptions.values.map(\.polling) + purchases.values.map(\.polling)
        let moved = polled.compactMap { polling -> (receipt: Int64, left: Int16)? in
            guard let old = polling.storedPoller, let new = polling.poller, new != old,
                let left = pollers?.schedules[old]?.followUps, left > 0
            else { return nil }
            return (new.number, Int16(clamping: left))
        }
        guard !moved.isEmpty else { return }
        try transaction.query(
            Queries.moveFollowUps, [.int8s(moved.map(\.receipt)), .int4s(moved.map { Int32($0.left) })])
    }

    /// Forgets the last answers about the receipts that poll, or polled, what this transaction changed. Their equals
    /// would no longer be the last word. Those that it scheduled have new fingerprints.
    private func forgetFingerprints(scheduled: Set<ReceiptID>, in transaction: Transaction) throws {
        let changed =
            subscriptions.values.filter { $0.wasChecked || $0.polling.isChanged }.map(\.polling)
            + purchases.values.filter { $0.wasChecked || $0.polling.isChanged }.map(\.polling)
        let late = batch.map(\.claim).filter { pollers?.isLeaseLost($0) ?? false }.map(\.receiptID)
        // The clocks of a receipt that takes over are folded, and do not count for what it takes over.
        let newcomers = Set(changed.filter(\.isHandedOver).compactMap(\.poller)).subtracting(scheduled)
        let outdated = Set(changed.flatMap { [$0.storedPoller, $0.poller] }.compactMap(\.self)).subtracting(scheduled)
        guard !outdated.isEmpty || !late.isEmpty else { return }
        let unclocked = newcomers.union(late)
        try transaction.query(
            Queries.forgetFingerprints,
            [.int8s(outdated.map(\.number).sorted()), .int8s(unclocked.map(\.number).sorted())])
    }

    /// When a receipt has to be asked about for the locked subscriptions and purchases.
    private struct Turn {
        var dueAt: Instant
        var lane: Lane
        var isHandedOver: Bool
    }

    private func pollingTurns() -> [ReceiptID: Turn] {
        var turns: [ReceiptID: Turn] = [:]
        func add(_ polling: PollingDraft, lane: (Instant) -> Lane) {
            guard let receipt = polling.poller, let next = polling.nextCheckAt else { return }
            let dueAt = polling.isHandedOver ? min(recordedAt, next) : next
            let turn = Turn(dueAt: dueAt, lane: lane(dueAt), isHandedOver: polling.isHandedOver)
            guard let other = turns[receipt] else { return turns[receipt] = turn }
            turns[receipt] = Turn(
                dueAt: min(other.dueAt, turn.dueAt), lane: other.dueAt <= turn.dueAt ? other.lane : turn.lane,
                isHandedOver: other.isHandedOver || turn.isHandedOver)
        }
        for draft in subscriptions.values where draft.wasChecked || draft.polling.isConcerned {
            add(draft.polling) { draft.polling.isUrgent ? .expiring : lane(of: .at($0), polled: [draft]) }
        }
        for draft in purchases.values where draft.wasChecked || draft.polling.isConcerned {
            add(draft.polling) { _ in .sweep }
        }
        return turns
    }

    /// Writes the polling of what was not folded, which no other statement writes.
    private func writeUnchecked(in transaction: Transaction) throws {
        let kept = subscriptions.values.filter { $0.polling.isChanged && !$0.wasChecked }.sorted { $0.rowID < $1.rowID }
        let bought = purchases.values.filter { $0.polling.isChanged && !$0.wasChecked }.sorted { $0.rowID < $1.rowID }
        guard !kept.isEmpty || !bought.isEmpty else { return }
        try transaction.query(
            Queries.writePolling,
            [
                .int8s(kept.map(\.rowID)), .int8s(kept.map(\.polling.poller?.number)),
                .instants(kept.map(\.polling.nextCheckAt)),
                .int8s(bought.map(\.rowID)), .int8s(bought.map(\.polling.poller?.number)),
                .instants(bought.map(\.polling.nextCheckAt)),
            ])
    }

    /// Stores what answers left out that would have named it, so that no receipt takes over what its answers do not contain.
    private func markOmissions(in transaction: Transaction) throws {
        let settled = batch.filter { $0.listsSubscriptions && !isRepeated($0) }
        let answered = settled.map(\.claim.receiptID)
        let whole = settled.filter(\.speaksForAll).map(\.claim.receiptID)
        let holding = settled.filter { !($0.evidence?.transactions.isEmpty ?? true) }.map(\.claim.receiptID)
        guard !answered.isEmpty else { return }
        let held = subscriptions.values.flatMap { draft in draft.polling.offers.map { ($0.number, draft.rowID) } }
        let bought = purchases.values.flatMap { draft in draft.polling.offers.map { ($0.number, draft.rowID) } }
        try transaction.query(
            Queries.markOmissions,
            [
                .timestamptz(microseconds: recordedMicroseconds), .int8s(answered.map(\.number)),
                .int8s(held.map(\.0)), .int8s(held.map(\.1)), .int8s(bought.map(\.0)), .int8s(bought.map(\.1)),
                .int8s(holding.map(\.number)), .int8s(whole.map(\.number)),
            ])
    }
}
