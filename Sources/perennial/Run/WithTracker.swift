import AppStore
import AsyncHTTPClient
import Ledger
import Tracking

/// Gives `body` the line from a receipt to the ledger. The only place that makes an HTTP client, and shuts it down.
func withTracker<Result: Sendable>(
    _ settings: Settings, ledger: SubscriptionLedger, _ body: (Tracker) async throws -> Result
) async throws -> Result {
    let logger = settings.logger
    var options = AppStoreOptions(productionURL: settings.appStoreURL, sandboxURL: settings.appStoreSandboxURL)
    // All calls of one check end within half the lease, so that an answer is settled while the receipt is still ours.
    options.deadline = min(options.deadline, .seconds(settings.leaseSeconds / 2))
    options.connectionsPerHostMax = Worker.callsMax
    let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: options.clientConfiguration)
    do {
        let tracker = Tracker(
            ledger: ledger, appStore: .live(options, client: client) { logger.warning("\($0)") },
            options: TrackerOptions(speedup: settings.pollSpeedup, leaseSeconds: settings.leaseSeconds), logger: logger)
        let result = try await body(tracker)
        try await client.shutdown()
        return result
    } catch {
        // The first error is the one worth telling; a client that does not shut down ends with the process anyway.
        try? await client.shutdown()
        throw error
    }
}
