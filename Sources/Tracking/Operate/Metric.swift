import AppStore
import Foundation
package import Metrics
import Subscriptions

/// Every metric of `/metrics`; https://prometheus.io/docs/practices/naming: base units, counters end in `_total`.
package enum Metric: String, CaseIterable, Sendable {
    case answers = "perennial_answers_total"
    case clockAhead = "perennial_clock_ahead_answers_total"
    case appStoreCalls = "perennial_appstore_calls_total"
    case appStoreSeconds = "perennial_appstore_answer_seconds"
    case refusedBundles = "perennial_refused_bundle_receipts_total"
    case inFlight = "perennial_in_flight_receipts"
    case claimReceipts = "perennial_claim_receipts"
    case settlementReceipts = "perennial_settlement_receipts"
    case settlementSeconds = "perennial_settlement_seconds"
    case settledReceipts = "perennial_settled_receipts_total"
    case events = "perennial_events_total"
    case lastSettlement = "perennial_last_settlement_timestamp_seconds"
    case notifications = "perennial_notifications_total"
    case webhookCalls = "perennial_webhook_calls_total"
    case webhookBehind = "perennial_webhook_behind_positions"
    case webhookWaiting = "perennial_webhook_waiting_streams"
    case webhookTrouble = "perennial_webhook_trouble"
    case lookups = "perennial_lookups_total"
    case requests = "perennial_http_requests_total"
    case requestSeconds = "perennial_http_request_seconds"
    case databaseUp = "perennial_database_up"
    case databaseWaiting = "perennial_database_waiting_calls"
    case databaseConnections = "perennial_database_transaction_connections"
    case standby = "perennial_standby"
    case due = "perennial_due_receipts"
    case dueLag = "perennial_due_lag_seconds"
    case budgetRate = "perennial_budget_calls_per_second"
    case budgetTokens = "perennial_budget_tokens"
    case breakerFailures = "perennial_breaker_failures"
    case appleFailures = "perennial_appstore_breaker_failures"
    case paused = "perennial_paused"
    case previousSecret = "perennial_previous_secret"
    case incident = "perennial_incident"
    case unreadClaims = "perennial_unread_claims"
    case violations = "perennial_invariant_violations"
    case feedPosition = "perennial_feed_position"
    case feedWaiting = "perennial_feed_unsequenced_events"
    case feedLag = "perennial_feed_lag_seconds"
    case workers = "perennial_workers"
    case entitled = "perennial_entitled_subscriptions"
    case paying = "perennial_paying_subscriptions"
    case trials = "perennial_trial_subscriptions"
    case grace = "perennial_grace_period_subscriptions"
    case billingRetry = "perennial_billing_retry_subscriptions"
    case monthlyRevenue = "perennial_mrr"
    case build = "perennial_build_info"
    case processStart = "process_start_time_seconds"
    case seriesDropped = "perennial_metrics_series_dropped_total"

    package var help: String {
        switch self {
        case .answers: "Answers about receipts, by what they were worth and Apple's status."
        case .clockAhead: "Answers dated too far ahead of the database's clock, clamped to it or not believed."
        case .appStoreCalls: "Requests sent to verifyReceipt and, with the prefix server_, to the Server API."
        case .appStoreSeconds: "How long Apple took for an answer, all its calls together."
        case .refusedBundles: "Receipts refused without a call, because they name another app."
        case .inFlight: "Receipts this process is asking Apple about."
        case .claimReceipts: "Receipts in one claim."
        case .settlementReceipts: "Answers settled together."
        case .settlementSeconds: "How long it took to settle them."
        case .settledReceipts: "Receipts settled: full, equal to the last answer, or failed."
        case .events: "Events that settlements of this process committed, by kind."
        case .lastSettlement: "When this process last settled answers."
        case .notifications: "Notifications of Apple's, by what they did."
        case .webhookCalls: "Calls of this process to receivers of webhooks, by outcome."
        case .webhookBehind: "Positions of the feed that a webhook has not read yet."
        case .webhookWaiting: "Streams of events that wait for a webhook's receiver."
        case .webhookTrouble:
            "Whether a webhook is off after 410, rests for an hour or has an event that waits for a day."
        case .lookups: "Answers about what customers may use, by where they came from."
        case .requests: "HTTP requests answered."
        case .requestSeconds: "How long an HTTP answer took."
        case .databaseUp: "Whether the database answered this scrape; what is read from it is absent otherwise."
        case .databaseWaiting: "Calls of this process that wait for the database."
        case .databaseConnections: "Open connections of this process for transactions."
        case .standby: "Whether the standby for lookups was found in this state last; absent without a standby."
        case .due: "Receipts due and not claimed, counted up to 10000."
        case .dueLag: "How long the first due receipt has been waiting; in the lane import, since it was stored."
        case .budgetRate: "Calls a second that the app may make at present; 0 is unlimited."
        case .budgetTokens: "Calls that could be made at once after the last claim."
        case .breakerFailures: "Rounds of answers in a row that mostly failed."
        case .appleFailures: "Rounds of calls in a row, about whatever app, that brought no answer."
        case .paused: "Whether scheduled checks of the app wait in this environment."
        case .previousSecret: "Whether Apple accepts only the app's previous shared secret in this environment."
        case .incident: "Whether an incident of the app runs: Apple refuses receipts in bulk, or a clock is wrong."
        case .unreadClaims: "Claims and words of Apple's signed texts that this version does not read."
        case .violations: "Violations of an invariant found when a worker looked last, those it repaired among them."
        case .feedPosition: "The last position of the feed."
        case .feedWaiting: "Committed events without a position, counted up to 10000."
        case .feedLag: "How long the first of them has been waiting."
        case .workers: "Workers that gave a sign of life in the last two minutes."
        case .entitled: "Subscriptions with access at the end of the last whole UTC day, by the summaries."
        case .paying: "Subscriptions that paid at the end of the last whole UTC day, by the summaries."
        case .trials: "Subscriptions in a trial at the end of the last whole UTC day, by the summaries."
        case .grace: "Subscriptions in a grace period now, by their timelines."
        case .billingRetry: "Subscriptions in billing retry now, by their timelines."
        case .monthlyRevenue:
            "Monthly recurring revenue at the end of the last whole UTC day, in units of its currency."
        case .build: "The version of this process; the value is always 1."
        case .processStart: "When the process started."
        case .seriesDropped: "Series not shown because their metric has too many."
        }
    }

    /// The kind of a metric, with the upper bounds of a histogram's buckets.
    package enum Kind: Sendable, Hashable {
        case counter
        case gauge
        case histogram([Double])

        package var word: String {
            switch self {
            case .counter: "counter"
            case .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    package var kind: Kind {
        if let bounds = Self.bounds[self] { return .histogram(bounds) }
        return rawValue.hasSuffix("_total") ? .counter : .gauge
    }

    private static let bounds: [Metric: [Double]] = [
        .appStoreSeconds: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
        .settlementSeconds: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
        .requestSeconds: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30],
        .claimReceipts: [1, 2, 5, 10, 20, 50, 100, 200, 500],
        .settlementReceipts: [1, 2, 5, 10, 20, 50, 100, 200, 500],
    ]
}

extension MetricsFactory {
    /// Returns the counter with the given labels.
    package func counter(_ metric: Metric, _ labels: [(String, String)] = []) -> Counter {
        Counter(label: metric.rawValue, dimensions: labels, factory: self)
    }

    /// Returns the gauge with the given labels.
    package func gauge(_ metric: Metric, _ labels: [(String, String)] = []) -> Meter {
        Meter(label: metric.rawValue, dimensions: labels, factory: self)
    }

    /// Returns the histogram with the given labels.
    package func histogram(_ metric: Metric, _ labels: [(String, String)] = []) -> Recorder {
        Recorder(label: metric.rawValue, dimensions: labels, aggregate: true, factory: self)
    }
}

/// The metrics that the tracker records as it works.
struct TrackerMetrics: Sendable {
    private let factory: any MetricsFactory
    private let inFlight: Meter

    init(_ factory: any MetricsFactory) {
        self.factory = factory
        inFlight = factory.gauge(.inFlight)
        // Each endpoint has its series before its first call.
        for endpoint in ["production", "sandbox", "server_production", "server_sandbox"] { _ = calls(of: endpoint) }
        factory.gauge(.processStart).set(Date.now.timeIntervalSince1970)
    }

    /// Records that a call about a receipt begins.
    func beginCall() { inFlight.increment() }

    /// Records that the call ended, with an answer or without.
    func answered(_ answer: AppStoreAnswer) {
        inFlight.decrement()
        guard answer.calls > 0 else { return }
        let (count, seconds) = calls(
            of: (answer.server == nil ? "" : "server_") + answer.environment.rawValue.lowercased())
        count.increment(by: answer.calls)
        seconds.record(Double(answer.elapsedMilliseconds) / 1_000)
    }

    /// The metrics of the calls to one of Apple's endpoints.
    private func calls(of endpoint: String) -> (count: Counter, seconds: Recorder) {
        let label = [("endpoint", endpoint)]
        return (factory.counter(.appStoreCalls, label), factory.histogram(.appStoreSeconds, label))
    }

    func claimed(_ receipts: Int) {
        guard receipts > 0 else { return }
        factory.histogram(.claimReceipts).record(receipts)
    }

    /// Records answers that were settled together, or that could not be.
    func settled(_ answers: [Checked], _ batch: SettledBatch, elapsed: Duration) {
        let (equal, full) = (batch.confirmed, batch.settled)
        let outcomes = Dictionary(full.map { ($0.receiptID, $0.outcome) }) { _, last in last }
        let kinds = answers.map { answer in
            let receipt = answer.claim.receiptID
            let outcome = equal.contains(receipt) ? "verified" : outcomes[receipt]?.rawValue ?? "unsettled"
            return [answer.claim.app.bundleID.text, outcome, answer.repeatsLast ? "0" : answer.answer.statusLabel]
        }
        for (kind, answers) in Dictionary(kinds.map { ($0, 1) }, uniquingKeysWith: +) {
            factory.counter(.answers, Array(zip(["app", "outcome", "status"], kind))).increment(by: answers)
        }
        count(equal.count, as: "equal")
        count(full.count, as: "full")
        count(answers.count - equal.count - full.count, as: "failed")
        for event in batch.events { factory.counter(.events, [("kind", event.kind.rawValue)]).increment() }
        factory.histogram(.settlementReceipts).record(answers.count)
        factory.histogram(.settlementSeconds).record(elapsed.seconds)
        factory.gauge(.lastSettlement).set(Date.now.timeIntervalSince1970)
    }

    /// Records answers whose clock was too far ahead of the database's clock.
    func ahead(_ answers: [Checked]) {
        for answer in answers {
            let believed = answer.clock.instant == nil ? "no" : "clamped"
            factory.counter(.clockAhead, [("app", answer.claim.app.bundleID.text), ("believed", believed)]).increment()
        }
    }

    /// Records receipts that were refused because they name another app.
    func refused(_ receipts: Int, of app: BundleID) {
        factory.counter(.refusedBundles, [("app", app.text)]).increment(by: receipts)
    }

    func sent(_ outcome: WebhookOutcome) {
        let word =
            switch outcome {
            case .delivered: "delivered"
            case .gone: "gone"
            case .failed: "failed"
            }
        factory.counter(.webhookCalls, [("outcome", word)]).increment()
    }

    private func count(_ receipts: Int, as way: String) {
        guard receipts > 0 else { return }
        factory.counter(.settledReceipts, [("way", way)]).increment(by: receipts)
    }
}

extension AppStoreAnswer {
    /// Apple's status as a label with a bounded number of values.
    fileprivate var statusLabel: String {
        if let code = server?.code { return code == 0 ? "0" : "\(code / 10_000)xxxx" }
        guard let status = response?.status else {
            guard let httpStatus else { return "none" }
            return httpStatus == 200 ? "unreadable" : "http_\(httpStatus / 100)xx"
        }
        switch status {
        case 0, 21000...21010: return String(status)
        case 21100...21199: return "211xx"
        default: return "other"
        }
    }
}

extension Duration {
    package var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
