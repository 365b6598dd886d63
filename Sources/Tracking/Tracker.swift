package import AppStore
import Foundation
package import Logging
package import Metrics

/// The options of a tracker.
package struct TrackerOptions: Sendable {
    /// How long a claim lasts, in seconds; after it another worker takes over the receipts of a crashed one.
    package var leaseSeconds: Double
    /// Where checks run, ideally where Apple's answers arrive. Nil: on Swift's own threads.
    package var executor: (any TaskExecutor)?
    /// The most calls at a time; the HTTP client has as many connections.
    package var callsMax: Int
    /// Seconds from the start of a worker to its first look for a turn to verify the ledger, and between two looks.
    package var verifyRestSeconds = 30.0

    /// Seconds between two trials of a shared secret that Apple refuses, of an app and environment.
    package var secretTrialSeconds = 60.0

    /// Creates options, with the defaults of production.
    package init(
        leaseSeconds: Double = 60, executor: (any TaskExecutor)? = nil, callsMax: Int = Worker.callsMax
    ) {
        self.callsMax = callsMax
        self.leaseSeconds = leaseSeconds
        self.executor = executor
    }
}

/// What every check needs: a ledger, a client of the App Store, options, a log and metrics. Extensions add the checks.
package struct Tracker: Sendable {
    package private(set) var ledger: SubscriptionLedger
    let appStore: AppStoreClient
    let signedTexts: SignedTextVerifier
    /// What calls receivers of webhooks; nil in a process that calls none.
    package let webhookSender: WebhookSender?
    package let options: TrackerOptions
    package let logger: Logger
    let metrics: TrackerMetrics
    let conditions: ConditionMonitor
    let counting = CheckCounting()
    let identity = CheckerIdentity()
    let singleFlight = SingleFlight()
    let tally = AnswerTally()
    let unread = UnreadTally()
    let feedBell = FeedBell()

    /// Creates a tracker that asks `appStore`, writes to `ledger` and counts in `metrics`, by default nowhere.
    package init(
        ledger: SubscriptionLedger, appStore: AppStoreClient, options: TrackerOptions, logger: Logger,
        metrics: any MetricsFactory = NOOPMetricsHandler.instance,
        signedTexts: SignedTextVerifier = SignedTextVerifier(), webhookSender: WebhookSender? = nil
    ) {
        self.webhookSender = webhookSender
        self.signedTexts = signedTexts
        self.ledger = ledger
        self.ledger.readNotification = { $0.evidence }
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
}

extension Tracker {
    /// Runs a job that may fail; returns nil when it failed. The log has a line when failures begin and when they end.
    ///
    /// `what` always has the same words. With `tries` above 1 a temporary failure is retried after 0.5 s, doubling.
    @discardableResult
    func attempt<Result>(_ what: String, tries: Int = 1, _ body: () async throws -> Result) async -> Result? {
        do {
            let result = try await repeating { error, tried in
                // A process that stops does not wait for a database that is away.
                let isLost = isStopping() && error.storageFailure?.isLoss == true
                return tried < tries && error.storageFailure?.mayPass ?? false && !isLost
            } pausing: { error, tried in
                logger.debug("could not \(what): \(error)")
                await rest(seconds: 0.5 * Double(1 << min(tried - 1, 6)))
            } _: {
                try await body()
            }
            conditions.clear(.work(what))
            return result
        } catch {
            failed(to: what, error)
            return nil
        }
    }

    /// Records that a job failed. The failure is logged once, unless its cause is logged.
    func failed(to work: String, _ error: any Error) {
        logger.debug("could not \(work): \(error)")
        if !error.isLoggedElsewhere { conditions.raise(.work(work), by: "\(error)") }
    }
}

extension Error {
    /// Whether the cause is logged already: the database's connections log their loss, and this process its stop.
    package var isLoggedElsewhere: Bool {
        guard let failure = storageFailure else { return self is CancellationError }
        return failure.isLoss || failure.isStop
    }
}

/// Repeats `body` while `mayRepeat` allows it for an error and the tries so far, each time after `pausing`.
package func repeating<Result>(
    while mayRepeat: (any Error, _ tries: Int) -> Bool,
    pausing: (any Error, _ tries: Int) async throws -> Void = { _, _ in }, _ body: () async throws -> Result
) async throws -> Result {
    var tries = 0
    while true {
        tries += 1
        do {
            return try await body()
        } catch  where mayRepeat(error, tries) {
            try await pausing(error, tries)
        }
    }
}
