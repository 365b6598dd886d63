import AppStore
import Foundation
import Ledger
import Logging
import Subscriptions

/// How the tracker runs.
public struct TrackerOptions: Sendable {
    /// Divides every delay of the schedule, leeway and allowance; 1 in production, larger with an accelerated App Store.
    public var speedup: Int
    /// How long a claim is ours; a crashed worker's receipts are taken over after it.
    public var leaseSeconds: Double
    /// Where checks run: best where Apple's answers arrive. Nil: on Swift's own threads.
    public var executor: (any TaskExecutor)?

    /// Options with the defaults of production.
    public init(speedup: Int = 1, leaseSeconds: Double = 60, executor: (any TaskExecutor)? = nil) {
        self.speedup = speedup
        self.leaseSeconds = leaseSeconds
        self.executor = executor
    }
}

/// The line from a claim to what is remembered: ask Apple, find what the answer is worth, settle it.
public struct Tracker: Sendable {
    /// What is remembered.
    public private(set) var ledger: SubscriptionLedger
    let appStore: AppStoreClient
    let options: TrackerOptions
    let logger: Logger
    let metrics: TrackerMetrics
    let identity = CheckerIdentity()
    let checksUnderWay = ChecksUnderWay()
    let tally = AnswerTally()
    let feedBell = FeedBell()

    /// A tracker that asks `appStore` and writes to `ledger`; what it counts is kept in `metrics`.
    public init(
        ledger: SubscriptionLedger, appStore: AppStoreClient, options: TrackerOptions, logger: Logger,
        metrics: MetricsRegistry = MetricsRegistry()
    ) {
        self.ledger = ledger
        self.appStore = appStore
        self.options = options
        self.logger = logger
        self.metrics = TrackerMetrics(metrics)
    }

    /// The same tracker in the hands of `actor`: what is written through it is remembered as theirs.
    public func acting(as actor: Actor) -> Tracker {
        var tracker = self
        tracker.ledger = ledger.acting(as: actor)
        return tracker
    }

    /// Asks Apple about one claimed receipt and settles what it says: this is the program.
    ///
    /// Nil when the answer could not be written; the log says why, and the lease runs out.
    func check(_ claim: Claim, by worker: WorkerID) async throws -> Settled? {
        try await settleInFull(await ask(about: claim), by: worker)
    }

    /// Settles one answer in full, even when it says what the last one said: somebody wants to be told.
    func settleInFull(_ answer: Checked, by worker: WorkerID) async throws -> Settled? {
        let begin = ContinuousClock.now
        warnOfSilence(in: [answer])
        let settled = try await settle([answer.settlement], by: worker)
        let batch = CheckedBatch(receipts: settled.count, settled: settled)
        metrics.settled([answer], equal: [], batch, elapsed: ContinuousClock.now - begin)
        return settled.first
    }

    /// Asks Apple about a claimed receipt; never throws: an outage is an answer too.
    func ask(about claim: Claim) async -> Checked {
        metrics.asks()
        let answer = await answer(about: claim)
        metrics.answered(answer)
        let checked = Checked(claim: claim, answer: answer, speedup: options.speedup)
        // A call that was given up is no answer of Apple's.
        if answer.response != nil || !Task.isCancelled { tally.count(checked) }
        return checked
    }

    /// Settles many answers together: those that say what the last one said cheaply, the others in full. The log gets one
    /// line for all of them.
    func settle(_ answers: [Checked], by worker: WorkerID) async throws -> CheckedBatch {
        let begin = ContinuousClock.now
        let confirmed = try await ledger.confirm(answers.compactMap(\.equal), by: worker, speedup: options.speedup)
        let news = answers.filter { !confirmed.contains($0.claim.receiptID) }
        warnOfUnreadableRows(in: news)
        warnOfSilence(in: news)
        let settled = try await settle(news.map(\.settlement), by: worker)
        let elapsed = ContinuousClock.now - begin
        let batch = CheckedBatch(receipts: confirmed.count + settled.count, settled: settled)
        metrics.settled(answers, equal: confirmed, batch, elapsed: elapsed)
        logger.info("settled", metadata: batch.line(of: answers.count, equal: confirmed.count, elapsed: elapsed))
        return batch
    }

    /// One line a batch: Apple may have changed its answers.
    private func warnOfUnreadableRows(in answers: [Checked]) {
        let odd = answers.filter { $0.answer.response.map { !$0.isComplete } ?? false }
        guard let first = odd.first, let path = first.answer.response?.unreadableRows.first else { return }
        logger.warning(
            "rows of Apple's answers cannot be read; see `perennial receipt show` and `perennial explain`",
            metadata: ["answers": "\(odd.count)", "receipt": "\(first.claim.receiptID)", "row": "\(path)"])
    }

    /// One line a batch: what is stored and told of it leaves out what the network called it.
    private func warnOfSilence(in answers: [Checked]) {
        let silent = answers.filter { $0.answer.response == nil }
        guard let first = silent.first, let trouble = first.answer.troubleInFull else { return }
        logger.warning(
            "Apple gave no answer",
            metadata: ["answers": "\(silent.count)", "receipt": "\(first.claim.receiptID)", "trouble": "\(trouble)"])
    }

    private func settle(_ settlements: [Settlement], by worker: WorkerID) async throws -> [Settled] {
        let batch = try await ledger.settle(settlements, by: worker, speedup: options.speedup) {
            stored, evidence, policy in reconcile(stored, with: evidence, policy: policy)
        }
        for failure in batch.failures {
            logger.error("receipt \(failure.receiptID) could not be settled: \(failure.reason)")
        }
        if !batch.settled.isEmpty { feedBell.ring() }
        return batch.settled
    }

    /// Ends access where the outage allowance ran out.
    func endHolds() async throws {
        try await ledger.endHolds { stored, silence, policy in
            reconcile(stored, with: silence, policy: policy)
        }
    }

    private func answer(about claim: Claim) async -> AppStoreAnswer {
        let endpoint = claim.environment.map(Endpoint.init) ?? .production
        do {
            let secrets = try ledger.secrets(of: claim.app)
            return await appStore.verify(
                AppStoreRequest(
                    receipt: Data(claim.receipt).base64EncodedString(), secret: secrets.current,
                    previousSecret: secrets.previous, askFirst: endpoint, sandboxAllowed: claim.app.sandboxAllowed))
        } catch {
            logger.error("cannot ask about receipt \(claim.receiptID): \(error)")
            return AppStoreAnswer(
                environment: endpoint, httpStatus: nil, body: [], response: nil,
                trouble: "The app's shared secret cannot be read here; the log says why.", calls: 0,
                usedPreviousSecret: false, elapsedMilliseconds: 0, correlationID: nil)
        }
    }
}
