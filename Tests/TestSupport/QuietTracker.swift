import AppStore
import Ledger
import Logging
import Metrics
import Tracking

extension Logger {
    /// A logger that writes nothing.
    package static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}

extension Tracker {
    /// Returns a tracker that logs nothing, with an App Store that is away unless another one is given.
    package static func quiet(
        _ ledger: SubscriptionLedger, appStore: AppStoreClient = .answering(nil),
        metrics: any MetricsFactory = NOOPMetricsHandler.instance
    ) -> Tracker {
        Tracker(ledger: ledger, appStore: appStore, options: TrackerOptions(), logger: .quiet, metrics: metrics)
    }
}

extension AppStoreClient {
    /// Returns an App Store that always answers with the same body, or never answers.
    package static func answering(_ body: String?) -> AppStoreClient {
        AppStoreClient { _ in
            let bytes = Array((body ?? "").utf8)
            return AppStoreAnswer(
                environment: .production, httpStatus: body == nil ? nil : 200, body: bytes,
                response: body == nil ? nil : try? VerifyReceiptResponse(parsing: bytes),
                failure: body == nil ? "The App Store did not answer." : nil, calls: 1, usedPreviousSecret: false,
                elapsedMilliseconds: 1, correlationID: nil)
        }
    }
}
