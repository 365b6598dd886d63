import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// How many calls about a receipt may bring no usable answer before another receipt takes over what it polls.
    static let fruitlessAttemptsMax = 5

    /// Decides which receipt is asked about each subscription and purchase from now on, and when. Everything that a
    /// transaction changes keeps a poller where one exists. `writePolling` moves the schedules of the chosen receipts.
    mutating func planPolling() throws(PollersChanged) {
        try choosePollers()
        planNextChecks()
    }

    private mutating func choosePollers() throws(PollersChanged) {
        guard let pollers else { return }
        let fitness = fitness(of: pollers)
        for (key, draft) in subscriptions {
            let successor = pollers.found.subscriptions[draft.rowID]?.successor
            if draft.wasChecked || draft.polling.isConcerned { try pollers.require(draft.polling.storedPoller) }
            try subscriptions[key]?.polling.handOver(to: successor, by: fitness)
        }
        for (key, draft) in purchases {
            // A purchase that a receipt omits was used up. Another receipt that omits it too cannot take over.
            let successor = pollers.found.purchases[draft.rowID]?.successor.flatMap { $0.omits ? nil : $0 }
            if draft.wasChecked || draft.polling.isConcerned { try pollers.require(draft.polling.storedPoller) }
            try purchases[key]?.polling.handOver(to: successor, by: fitness)
            if draft.polling.isOmitted, purchases[key]?.polling.poller == draft.polling.storedPoller {
                purchases[key]?.polling.release()
            }
        }
    }

    /// Returns which receipts can be asked; a wrong secret and a refusal during an incident say nothing of a receipt.
    private func fitness(of pollers: LockedPollers) -> ReceiptFitness {
        var fitness = ReceiptFitness(pollers, unable: unable)
        for settlement in batch {
            let receipt = settlement.claim.receiptID
            switch settlement.finding {
            case .verified(let evidence):
                fitness.learn(receipt, canPoll: true, createdAt: evidence.receiptCreatedAt)
                if settlement.vouching != .pointer { fitness.learnVouched(receipt) }
            case .rejected(let refusal) where refusal.kind != .wrongSecret && !isForgiven(settlement):
                fitness.learn(receipt, canPoll: false, createdAt: nil)
            case .indeterminate where settlement.claim.attempts >= Self.fruitlessAttemptsMax:
                fitness.learn(receipt, canPoll: false, createdAt: nil)
            case .rejected, .indeterminate:
                break
            }
        }
        return fitness
    }

    private mutating func planNextChecks() {
        let now = recordedAt
        for (key, draft) in subscriptions where draft.wasChecked || draft.polling.isConcerned {
            guard let state = draft.state, let policy = draft.policy ?? policy(of: key.appID, key.environment) else {
                continue
            }
            let next = nextCheck(
                for: [state], environment: key.environment, outcome: .verified, now: now,
                seed: draft.polling.seed, policy: policy)
            let soon = isDoubted(key) ? next.by(now + secondAnswerDelay(policy: policy)) : next
            subscriptions[key]?.polling.plan(soon)
        }
        for (key, draft) in purchases where draft.wasChecked || draft.polling.isConcerned {
            guard let state = draft.state, let policy = policy(of: key.appID, key.environment) else { continue }
            let next = nextCheck(
                for: [], purchasedAt: [state.purchasedAt], environment: key.environment, now: now,
                seed: draft.polling.seed, policy: policy)
            let isRetracted =
                state.refundRetractedAt != nil
                && batch.contains { $0.claim.receiptID == draft.polling.poller && doubtsRefund(of: key, in: $0) }
            purchases[key]?.polling.plan(isRetracted ? next.by(now + secondAnswerDelay(policy: policy)) : next)
        }
    }

    /// Returns the app's tolerances; nil where the apps were not loaded.
    func policy(of appID: Int32, _ environment: StoreEnvironment) -> Policy? { apps[appID]?.policy(for: environment) }
}

extension PollingDraft {
    /// Chooses the poller, and releases one that will never answer again. Throws when a successor that was found before
    /// the locks cannot poll any more; the next attempt finds another.
    fileprivate mutating func handOver(to successor: Successor?, by fitness: ReceiptFitness) throws(PollersChanged) {
        choose(successor, by: fitness)
        if isHandedOver, let poller, !fitness.canPoll(poller) { throw PollersChanged() }
        // What another transaction polls is not considered here.
        if isConcerned, let poller, fitness.isLost(poller) { release() }
    }

    /// The seed of the poller's own jitter for the next check.
    var seed: UInt64 { UInt64(bitPattern: poller?.number ?? 0) }
}

/// The receipts that can be asked about from now on, and their age.
struct ReceiptFitness: Sendable {
    private var able: Set<ReceiptID>
    private var madeAt: [ReceiptID: Instant]
    private var senders: [ReceiptID: ReceiptSender]
    private let lost: Set<ReceiptID>

    /// Starts from the stored facts; `unable` receipts cannot go on, whatever is stored.
    init(_ pollers: LockedPollers, unable: [ReceiptID]) {
        able = Set(pollers.receipts.keys.filter(pollers.canPoll)).subtracting(unable)
        madeAt = pollers.receipts.compactMapValues(\.createdAt)
        senders = pollers.receipts.mapValues(\.sender)
        lost = Set(pollers.receipts.keys.filter(pollers.isLost))
    }

    /// Learns from an answer whether its receipt can be asked about again, and when the device made the receipt.
    mutating func learn(_ receipt: ReceiptID, canPoll: Bool, createdAt: Instant?) {
        if canPoll { able.insert(receipt) } else { able.remove(receipt) }
        if let createdAt { madeAt[receipt] = max(createdAt, self.madeAt(receipt)) }
    }

    /// Learns that Apple vouches for a receipt, which makes it a better poller.
    mutating func learnVouched(_ receipt: ReceiptID) { senders[receipt] = .vouched }

    func sender(_ receipt: ReceiptID) -> ReceiptSender { senders[receipt] ?? .none }

    /// Whether a receipt is asked rather than another one that holds the same: the better sender's, else the newer one.
    func prefers(_ receipt: ReceiptID, to other: ReceiptID) -> Bool {
        (sender(receipt), madeAt(receipt)) > (sender(other), madeAt(other))
    }

    func canPoll(_ receipt: ReceiptID) -> Bool { able.contains(receipt) }

    /// Whether a receipt that cannot be asked about will never recover by itself.
    func isLost(_ receipt: ReceiptID) -> Bool { !canPoll(receipt) && lost.contains(receipt) }

    /// Returns when the device made the receipt; the earliest instant where the receipt does not say.
    func madeAt(_ receipt: ReceiptID) -> Instant { madeAt[receipt] ?? .distantPast }
}

/// The receipt that is asked about a subscription or purchase, during a settlement.
struct PollingDraft: Sendable {
    struct Successor: Hashable, Sendable {
        let receipt: ReceiptID
        /// Whether its last answer left out what it would be asked about.
        let omits: Bool
    }

    /// How answers left it out, after the newest one that named it.
    struct Omission: Sendable {
        /// Whether the last answer about its poller did.
        let isByPoller: Bool
        /// How many answers that hold purchases did.
        let absences: Int
        /// The time of the first of them.
        let since: Instant?
        /// Whether no receipt can say more: each other one that can be asked leaves it out, and no incident is running.
        let isEverywhere: Bool
    }

    /// So many answers that hold purchases have to leave it out, over this time, before its absence counts.
    private static let absencesMin = 3
    private static let absentFor = Delay.hours(72)

    let storedPoller: ReceiptID?
    private let storedNextCheckAt: Instant?
    /// The receipt that is asked about from now on; nil when no receipt can vouch.
    private(set) var poller: ReceiptID?
    /// The next time to ask; nil when nothing more is expected.
    private(set) var nextCheckAt: Instant?
    /// Receipts whose verified answers contain it.
    private(set) var offers: [ReceiptID] = []
    /// What answers before this settlement left out of it; nil where the last ones named it.
    var omission: Omission?
    /// Whether the verified answer about its poller leaves it out.
    private(set) var isOmitted = false
    /// Whether an answer shows that nothing changed, without naming it.
    private var isConfirmed = false
    /// Whether to check the schedule although no answer came.
    private var isReviewed = false
    /// The latest moment at which a review wants an answer; nil where the plan stays as it is.
    private var wantedBy: Instant?

    init(row: Row) throws {
        storedPoller = try row.int8IfPresent("polled_by").map { ReceiptID($0) }
        storedNextCheckAt = try row.instantIfPresent("next_check_at")
        (poller, nextCheckAt) = (storedPoller, storedNextCheckAt)
    }

    /// Whether a receipt that did not just answer takes over.
    var isHandedOver: Bool { poller.map { $0 != storedPoller && !offers.contains($0) } ?? false }

    /// Whether an answer is wanted at once.
    var isUrgent: Bool { isHandedOver || wantedBy != nil }

    var isChanged: Bool { poller != storedPoller || nextCheckAt != storedNextCheckAt }

    /// Whether to check the schedule although nothing was folded.
    var isConcerned: Bool { isHandedOver || isOmitted || isConfirmed || isReviewed || isChanged }

    /// Notes that a verified answer about a receipt contains it.
    mutating func offer(_ receipt: ReceiptID) { offers.append(receipt) }

    mutating func omit() { isOmitted = true }

    /// Notes that an answer shows that nothing changed, without naming it: its next check is planned anew.
    mutating func confirm() { isConfirmed = true }

    /// Whether one more answer that holds purchases and leaves it out shows at `now` that Apple no longer lists it.
    func isAbsent(at now: Instant, speedup: Int) -> Bool {
        guard let omission, omission.isEverywhere, let since = omission.since else { return false }
        return omission.absences + 1 >= Self.absencesMin && now - since >= Self.absentFor.divided(by: speedup)
    }

    /// Requests a check of the schedule although no answer came; an overdue check stays overdue.
    mutating func review(by moment: Instant?) { (isReviewed, wantedBy) = (true, moment) }

    /// Chooses the newest receipt that can vouch, of those with the best sender. The present poller goes on until a
    /// newer one comes, unless the answer about it, now or the last time, leaves the subscription out.
    ///
    /// A receipt that no customer sent polls only what no customer's receipt holds. A poller that cannot go on stays
    /// where no other receipt can take over: it may recover. A successor whose answers also leave it out is chosen only
    /// when the poller is refused or silent.
    mutating func choose(_ successor: Successor?, by fitness: ReceiptFitness) {
        let isAble = poller.map(fitness.canPoll) ?? false
        let isLeftOut = isOmitted || ((omission?.isByPoller ?? false) && !(poller.map(offers.contains) ?? false))
        var best = isAble && !isLeftOut ? poller : nil
        var candidates = offers
        if let successor {
            let isOutranked = best.map { fitness.sender(successor.receipt) > fitness.sender($0) } ?? false
            let isNeeded = best == nil && (!successor.omits || (offers.isEmpty && !isAble))
            if isNeeded || isOutranked && !successor.omits { candidates.append(successor.receipt) }
        }
        for candidate in candidates {
            if let best, !fitness.prefers(candidate, to: best) { continue }
            best = candidate
        }
        poller = best ?? poller
    }

    /// Takes the time of the next check; there is none without a poller.
    mutating func plan(_ next: CheckPlan) {
        switch next {
        case .at(let instant) where isReviewed:
            nextCheckAt = poller == nil ? nil : [instant, storedNextCheckAt, wantedBy].compactMap(\.self).min()
        case .at(let instant): nextCheckAt = poller == nil ? nil : instant
        case .retired: nextCheckAt = nil
        }
    }

    /// Removes the poller, because no receipt can vouch for it any more.
    mutating func release() { (poller, nextCheckAt) = (nil, nil) }
}

extension SettlementRun {
    /// Writes which receipts are asked about what, and moves the schedules that are not in `scheduled`. A receipt that
    /// takes over is due at once. `refused` are the receipts that Apple refused for the last time.
    func writePolling(scheduled: Set<ReceiptID> = [], refused: [ReceiptID] = [], in transaction: Transaction) throws {
        try writeUnchecked(in: transaction)
        try forgetFingerprints(scheduled: scheduled, in: transaction)
        try markOmissions(in: transaction)
        let turns = pollingTurns().filter { !scheduled.contains($0.key) }.sorted { $0.key < $1.key }
        if !turns.isEmpty {
            try transaction.query(
                Queries.cover, .int8s(turns.map(\.key.number)), .instants(turns.map(\.value.dueAt)),
                .texts(turns.map(\.value.lane.rawValue)), .int8s(turns.filter(\.value.isHandedOver).map(\.key.number)))
        }
        try moveFollowUps(in: transaction)
        try endQuestions(refused: refused, in: transaction)
        try retireOwnerless(in: transaction)
    }

    /// Takes the receipts that no customer sent out of the schedule once other receipts poll all that they polled.
    private func retireOwnerless(in transaction: Transaction) throws {
        let replaced = Set(pollings.filter { $0.poller != $0.storedPoller }.compactMap(\.storedPoller))
            .filter { receipts[$0]?.sender == ReceiptSender.none }
        guard !replaced.isEmpty else { return }
        try transaction.query(Queries.retireOwnerless, .int8s(replaced.map(\.number).sorted()))
    }

    private func endQuestions(refused: [ReceiptID], in transaction: Transaction) throws {
        func isLeft(_ polling: PollingDraft) -> Bool { polling.storedPoller != nil && polling.poller == nil }
        let kept = subscriptions.values.filter { isLeft($0.polling) }.map(\.rowID)
        let bought = purchases.values.filter { isLeft($0.polling) }.map(\.rowID)
        guard !kept.isEmpty || !bought.isEmpty || !refused.isEmpty else { return }
        try transaction.query(Queries.endQuestions, .int8s(kept), .int8s(bought), .int8s(refused.map(\.number)))
    }

    /// Has the receipts that took over go on with the follow-ups of those before.
    private func moveFollowUps(in transaction: Transaction) throws {
        let moved = pollings.compactMap { polling -> (receipt: Int64, left: Int16)? in
            guard let old = polling.storedPoller, let new = polling.poller, new != old,
                let left = pollers?.schedules[old]?.followUps, left > 0
            else { return nil }
            return (new.number, Int16(clamping: left))
        }
        guard !moved.isEmpty else { return }
        try transaction.query(Queries.moveFollowUps, .int8s(moved.map(\.receipt)), .int4s(moved.map { Int32($0.left) }))
    }

    private var pollings: [PollingDraft] { subscriptions.values.map(\.polling) + purchases.values.map(\.polling) }

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
            Queries.forgetFingerprints, .int8s(outdated.map(\.number).sorted()),
            .int8s(unclocked.map(\.number).sorted()))
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
            Queries.writePolling, .int8s(kept.map(\.rowID)), .int8s(kept.map(\.polling.poller?.number)),
            .instants(kept.map(\.polling.nextCheckAt)), .int8s(bought.map(\.rowID)),
            .int8s(bought.map(\.polling.poller?.number)), .instants(bought.map(\.polling.nextCheckAt)))
    }

    /// Stores what answers left out, so that no receipt takes over what its answers do not contain.
    private func markOmissions(in transaction: Transaction) throws {
        let settled = batch.filter { $0.listsSubscriptions && !wasSettledBefore($0) }
        let answered = settled.map(\.claim.receiptID)
        let whole = settled.filter(\.speaksForAll).map(\.claim.receiptID)
        let holding = settled.filter { !($0.evidence?.transactions.isEmpty ?? true) }.map(\.claim.receiptID)
        guard !answered.isEmpty else { return }
        let held = subscriptions.values.flatMap { draft in draft.polling.offers.map { ($0.number, draft.rowID) } }
        let bought = purchases.values.flatMap { draft in draft.polling.offers.map { ($0.number, draft.rowID) } }
        try transaction.query(
            Queries.markOmissions, .timestamptz(microseconds: recordedMicroseconds), .int8s(answered.map(\.number)),
            .int8s(held.map(\.0)), .int8s(held.map(\.1)), .int8s(bought.map(\.0)), .int8s(bought.map(\.1)),
            .int8s(holding.map(\.number)), .int8s(whole.map(\.number)))
    }
}
