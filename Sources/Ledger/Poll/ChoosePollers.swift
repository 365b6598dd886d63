import Subscriptions

extension SettlementRun {
    /// How many calls about a receipt may bring no usable answer before another receipt takes over what it polls.
    static let fruitlessAttemptsMax = 5

    /// Decides which receipt is asked about each subscription and purchase from now on, and when.
    ///
    /// Everything that a transaction changes keeps a poller where one exists: `writePolling` moves the schedules of the
    /// chosen receipts.
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
            subscriptions[key]?.polling.choose(successor, by: fitness)
            try subscriptions[key]?.polling.requireAble(by: fitness)
            subscriptions[key]?.polling.releaseLost(by: fitness)
        }
        for (key, draft) in purchases {
            // A purchase that a receipt omits was used up. Another receipt that omits it too cannot take over.
            let successor = pollers.found.purchases[draft.rowID]?.successor.flatMap { $0.omits ? nil : $0 }
            if draft.wasChecked || draft.polling.isConcerned { try pollers.require(draft.polling.storedPoller) }
            purchases[key]?.polling.choose(successor, by: fitness)
            try purchases[key]?.polling.requireAble(by: fitness)
            purchases[key]?.polling.releaseLost(by: fitness)
            if draft.polling.isOmitted, purchases[key]?.polling.poller == draft.polling.storedPoller {
                purchases[key]?.polling.release()
            }
        }
    }

    /// Returns which receipts can be asked; a wrong secret and a refusal during an incident say nothing about the
    /// receipt.
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
            subscriptions[key]?.polling.plan(next)
        }
        for (key, draft) in purchases where draft.wasChecked || draft.polling.isConcerned {
            guard let state = draft.state, let policy = policy(of: key.appID, key.environment) else { continue }
            let next = nextCheck(
                for: [], purchasedAt: [state.purchasedAt], environment: key.environment, now: now,
                seed: draft.polling.seed, policy: policy)
            let isRetracted = state.refundRetractedAt != nil
            purchases[key]?.polling.plan(isRetracted ? next.by(now + secondAnswerDelay(policy: policy)) : next)
        }
    }

    /// Returns the app's tolerances; nil where the apps were not loaded.
    func policy(of appID: Int32, _ environment: StoreEnvironment) -> Policy? {
        apps[appID]?.policy(for: environment)
    }
}

extension PollingDraft {
    /// Throws when a successor that was found before the locks cannot poll any more; the next attempt finds another.
    fileprivate func requireAble(by fitness: ReceiptFitness) throws(PollersChanged) {
        if isHandedOver, let poller, !fitness.canPoll(poller) { throw PollersChanged() }
    }

    /// Releases a poller that will never answer again. What another transaction polls is not considered here.
    fileprivate mutating func releaseLost(by fitness: ReceiptFitness) {
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

    /// Learns that Apple vouches for what its customer sent.
    mutating func learnVouched(_ receipt: ReceiptID) { senders[receipt] = .vouched }

    /// Returns who sent a receipt.
    func sender(_ receipt: ReceiptID) -> ReceiptSender { senders[receipt] ?? .none }

    /// Whether a receipt is asked rather than another one that holds the same: the one of the better sender, else the newer one.
    func prefers(_ receipt: ReceiptID, to other: ReceiptID) -> Bool {
        (sender(receipt), madeAt(receipt)) > (sender(other), madeAt(other))
    }

    /// Whether Apple may be asked about a receipt's contents.
    func canPoll(_ receipt: ReceiptID) -> Bool { able.contains(receipt) }

    /// Whether a receipt that cannot be asked about will never recover by itself.
    func isLost(_ receipt: ReceiptID) -> Bool { !canPoll(receipt) && lost.contains(receipt) }

    /// Returns when the device made the receipt; the earliest instant where the receipt does not say.
    func madeAt(_ receipt: ReceiptID) -> Instant { madeAt[receipt] ?? .distantPast }
}
