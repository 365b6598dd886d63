import AppStore
import Foundation
import Ledger
import Logging
import Subscriptions

/// The options of a tracker.
package struct TrackerOptions: Sendable {
    /// Divides every delay of the schedule, leeway and allowance; 1 in production, larger with an accelerated App
    /// Store.
    package var speedup: Int
    /// How long a claim lasts, in seconds; after it another worker takes over the receipts of a crashed one.
    package var leaseSeconds: Double
    /// Where checks run, ideally where Apple's answers arrive. Nil: on Swift's own threads.
    package var executor: (any TaskExecutor)?

    /// Creates options, with the defaults of production.
    package init(speedup: Int = 1, leaseSeconds: Double = 60, executor: (any TaskExecutor)? = nil) {
        self.speedup = speedup
        self.leaseSeconds = leaseSeconds
        self.executor = executor
    }
}

/// The line from a claim to the ledger: ask Apple, determine the outcome, settle it.
package struct Tracker: Sendable {
    /// The ledger that stores the results.
    package private(set) var ledger: SubscriptionLedger
    let appStore: AppStoreClient
    let options: TrackerOptions
    let logger: Logger
    let metrics: TrackerMetrics
    let conditions: ConditionMonitor
    let counting = CheckCounting()
    let identity = CheckerIdentity()
    let singleFlight = SingleFlight()
    let tally = AnswerTally()
    let feedBell = FeedBell()

    /// Creates a tracker that asks `appStore`, writes to `ledger` and counts in `metrics`.
    package init(
        ledger: SubscriptionLedger, appStore: AppStoreClient, options: TrackerOptions, logger: Logger,
        metrics: MetricsRegistry = MetricsRegistry()
    ) {
        self.ledger = ledger
        self.appStore = appStore
        self.options = options
        self.logger = logger
        self.metrics = TrackerMetrics(metrics)
        conditions = ConditionMonitor(logger: logger)
    }

    /// Returns the same tracker for `actor`, who is recorded as the author of everything written through it.
    package func acting(as actor: Actor) -> Tracker {
        var tracker = self
        tracker.ledger = ledger.acting(as: actor)
        return tracker
    }

    /// Asks Apple about one claimed receipt and settles the answer: this is the program.
    ///
    /// `settled` is nil when the answer could not be written; the log says why, and the lease runs out.
    func check(_ claim: Claim, by worker: WorkerID) async throws -> (answer: Checked, settled: Settled?) {
        let answer = await ask(about: claim)
        return (answer, try await settleInFull(answer, by: worker))
    }

    /// Settles one answer in full, even when it repeats the previous answer, because a caller waits for the result.
    func settleInFull(_ answer: Checked, by worker: WorkerID) async throws -> Settled? {
        let begin = ContinuousClock.now
        return try await settle([answer], equal: [], by: worker, since: begin).settled.first
    }

    /// Asks Apple about a claimed receipt. Never throws: an outage is an answer too.
    func ask(about claim: Claim) async -> Checked {
        metrics.asks()
        let answer = await answer(about: claim)
        metrics.answered(answer)
        let checked = Checked(claim: claim, answer: answer, speedup: options.speedup)
        // A call that was abandoned is not an answer from Apple.
        if answer.response != nil || !Task.isCancelled { tally.count(checked) }
        return checked
    }

    /// Settles many answers together: cheaply those that repeat the previous answer, the others in full.
    func settle(_ answers: [Checked], by worker: WorkerID) async throws -> CheckedBatch {
        let begin = ContinuousClock.now
        let confirmed = try await ledger.confirm(answers.compactMap(\.equal), by: worker, speedup: options.speedup)
        return try await settle(answers, equal: confirmed, by: worker, since: begin)
    }

    /// Settles in full the answers that are not in `equal`, which are confirmed already, then counts all of them.
    private func settle(
        _ answers: [Checked], equal: Set<ReceiptID>, by worker: WorkerID, since begin: ContinuousClock.Instant
    ) async throws -> CheckedBatch {
        let news = answers.filter { !equal.contains($0.claim.receiptID) }
        let full = try await ledger.settle(news.map(\.settlement), by: worker, speedup: options.speedup) {
            stored, evidence, policy in reconcile(stored, with: evidence, policy: policy)
        }
        if !full.settled.isEmpty { feedBell.ring() }
        see(answers, unwritten: full.failures)
        let batch = CheckedBatch(receipts: equal.count + full.settled.count, settled: full.settled, of: answers)
        let (counts, elapsed) = (batch.counts(of: answers.count), ContinuousClock.now - begin)
        counting.add(counts)
        metrics.settled(answers, equal: equal, batch, elapsed: elapsed)
        logger.debug(
            "settled", metadata: counts.metadata.merging(["elapsed_ms": "\(Int(elapsed.seconds * 1_000))"]) { $1 })
        return batch
    }

    /// Ends access where the outage allowance is exhausted.
    func endAllowances() async throws {
        try await ledger.endAllowances(speedup: options.speedup) { stored, silence, policy in
            reconcile(stored, with: silence, policy: policy)
        }
    }

    private func answer(about claim: Claim) async -> AppStoreAnswer {
        let endpoint = claim.environment.map(Endpoint.init) ?? .production
        do {
            let secrets = try ledger.secrets(of: claim.app)
            conditions.clear(.sealedSecret(claim.app.bundleID))
            return await appStore.verify(
                AppStoreRequest(
                    receipt: Data(claim.receipt).base64EncodedString(), secret: secrets.current,
                    previousSecret: secrets.previous, askFirst: endpoint, sandboxAllowed: claim.app.sandboxAllowed))
        } catch {
            conditions.raise(.sealedSecret(claim.app.bundleID), by: "\(error)")
            return AppStoreAnswer(
                environment: endpoint, httpStatus: nil, body: [], response: nil,
                failure: "The app's shared secret cannot be read here; the log says why.", calls: 0,
                usedPreviousSecret: false, elapsedMilliseconds: 0, correlationID: nil)
        }
    }
}
