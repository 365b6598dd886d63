package import AppStore
package import Logging
package import Metrics
package import Tracking

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
