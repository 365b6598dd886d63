package import AppStore
package import Ledger
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
    /// The ledger that stores the results.
    package private(set) var ledger: SubscriptionLedger
    let appStore: AppStoreClient
    let signedTexts: SignedTextVerifier
    /// What calls receivers of webhooks; nil in a process that calls none.
    package let webhookSender: WebhookSender?
    /// Its options.
    package let options: TrackerOptions
    /// The log of the process.
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
