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

/// How an operator runs a command of this program here.
package enum OperatorCommand {
    /// The variable with the words that a wrapper or a container needs in place of `perennial`.
    package static let variable = "PERENNIAL_COMMAND"
    fileprivate static let words = ProcessInfo.processInfo.environment[variable] ?? ""
}

extension String {
    /// The text with its commands of `perennial` as they are run here.
    package var runnableHere: String {
        guard !OperatorCommand.words.isEmpty else { return self }
        return ["`", "<code>"].reduce(self) {
            $0.replacing("\($1)perennial ", with: "\($1)\(OperatorCommand.words) ")
        }
    }

    /// The text with everything that a terminal would obey made visible, as `\u{1b}`: control characters, line ends,
    /// and marks that change the writing direction. Foreign text can forge no line and move no cursor.
    package var visible: String {
        guard unicodeScalars.contains(where: \.isObeyed) else { return self }
        return unicodeScalars.map { $0.isObeyed ? "\\u{\(String($0.value, radix: 16))}" : String($0) }.joined()
    }

    /// The same for several lines: line ends and tabs stay.
    package var visibleLines: String {
        guard unicodeScalars.contains(where: { $0.isObeyed && !$0.isLayout }) else { return self }
        return unicodeScalars.map { $0.isObeyed && !$0.isLayout ? String($0).visible : String($0) }.joined()
    }
}

extension Unicode.Scalar {
    /// Whether a terminal obeys it instead of showing it: controls of ECMA-48, and the marks of Unicode's annex 9.
    fileprivate var isObeyed: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case .format: (0x202A...0x202E).contains(value) || (0x2066...0x2069).contains(value)
        default: false
        }
    }

    fileprivate var isLayout: Bool { self == "\n" || self == "\t" }
}

extension BinaryInteger {
    /// Returns the number with its noun: `1 line`, `2 lines`.
    package func of(_ one: String, _ many: String) -> String { "\(self) \(self == 1 ? one : many)" }
}
