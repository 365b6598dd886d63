import AppStore
import Foundation
import Ledger
import Metrics
import Subscriptions

/// The metrics that the tracker records as it works.
struct TrackerMetrics: Sendable {
    private let factory: any MetricsFactory
    private let inFlight: Meter
    private let production: EndpointMetrics
    private let sandbox: EndpointMetrics
    private let serverProduction: EndpointMetrics
    private let serverSandbox: EndpointMetrics

    init(_ factory: any MetricsFactory) {
        self.factory = factory
        inFlight = factory.gauge(.inFlight)
        production = EndpointMetrics("production", factory)
        sandbox = EndpointMetrics("sandbox", factory)
        serverProduction = EndpointMetrics("server_production", factory)
        serverSandbox = EndpointMetrics("server_sandbox", factory)
        factory.gauge(.processStart).set(Date.now.timeIntervalSince1970)
    }

    /// Records that a call about a receipt begins.
    func asks() { inFlight.increment() }

    /// Records that the call ended, with an answer or without.
    func answered(_ answer: AppStoreAnswer) {
        inFlight.decrement()
        guard answer.calls > 0 else { return }
        let endpoint = endpoint(of: answer)
        endpoint.calls.increment(by: answer.calls)
        endpoint.seconds.record(Double(answer.elapsedMilliseconds) / 1_000)
    }

    private func endpoint(of answer: AppStoreAnswer) -> EndpointMetrics {
        let isServer = answer.server != nil
        switch answer.environment {
        case .production: return isServer ? serverProduction : production
        case .sandbox: return isServer ? serverSandbox : sandbox
        }
    }

    /// Records the number of receipts of one claim.
    func claimed(_ receipts: Int) {
        guard receipts > 0 else { return }
        factory.histogram(.claimReceipts).record(receipts)
    }

    /// Records answers that were settled together, or that could not be.
    func settled(_ answers: [Checked], equal: Set<ReceiptID>, _ batch: CheckedBatch, elapsed: Duration) {
        let full = batch.settled
        let outcomes = Dictionary(full.map { ($0.receiptID, $0.outcome) }) { _, last in last }
        let kinds = answers.map { answer in
            let receipt = answer.claim.receiptID
            let outcome = equal.contains(receipt) ? "verified" : outcomes[receipt]?.rawValue ?? "unsettled"
            return [answer.claim.app.bundleID.text, outcome, answer.isRepeated ? "0" : answer.answer.statusLabel]
        }
        for (kind, answers) in Dictionary(kinds.map { ($0, 1) }, uniquingKeysWith: +) {
            factory.counter(.answers, Array(zip(["app", "outcome", "status"], kind))).increment(by: answers)
        }
        count(equal.count, as: "equal")
        count(full.count, as: "full")
        count(answers.count - equal.count - full.count, as: "failed")
        for event in batch.events {
            factory.counter(.events, [("kind", event.kind.rawValue)]).increment()
        }
        factory.histogram(.settlementReceipts).record(answers.count)
        factory.histogram(.settlementSeconds).record(elapsed.seconds)
        factory.gauge(.lastSettlement).set(Date.now.timeIntervalSince1970)
    }

    /// Records answers whose clock was too far ahead of the database's clock.
    func ahead(_ answers: [Checked]) {
        for answer in answers {
            let labels = [
                ("app", answer.claim.app.bundleID.text), ("believed", answer.clock.instant == nil ? "no" : "clamped"),
            ]
            factory.counter(.clockAhead, labels).increment()
        }
    }

    /// Records receipts that were refused because they name another app.
    func refused(_ receipts: Int, of app: BundleID) {
        factory.counter(.refusedBundles, [("app", app.text)]).increment(by: receipts)
    }

    /// Records a call to a receiver of webhooks.
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

/// The metrics of the calls to one of Apple's endpoints.
private struct EndpointMetrics: Sendable {
    let calls: Counter
    let seconds: Recorder

    init(_ name: String, _ factory: any MetricsFactory) {
        calls = factory.counter(.appStoreCalls, [("endpoint", name)])
        seconds = factory.histogram(.appStoreSeconds, [("endpoint", name)])
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
    /// The duration in seconds.
    package var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
