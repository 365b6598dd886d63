import AppStore
import AsyncHTTPClient
import Ledger
import NIOPosix
import Tracking

/// Gives `body` the line from a receipt to the ledger. The only place that makes an HTTP client, and shuts it down.
///
/// Calls and checks share one thread: a check wakes no other on its way, and the other processors are left to PostgreSQL and
/// to whoever looks something up.
func withTracker<Result: Sendable>(
    _ settings: Settings, ledger: SubscriptionLedger, _ body: (Tracker) async throws -> Result
) async throws -> Result {
    let logger = settings.logger
    var options = AppStoreOptions(productionURL: settings.appStoreURL, sandboxURL: settings.appStoreSandboxURL)
    // All calls of one check end within half the lease, so that an answer is settled while the receipt is still ours.
    options.deadline = min(options.deadline, .seconds(settings.leaseSeconds / 2))
    // A connection that cannot be made fails before the check does: then there is a reason to tell.
    options.connectTimeout = min(options.connectTimeout, options.deadline / 2)
    options.trustedRoots = settings.appStoreRoots
    options.connectionsPerHostMax = OpenFiles.raised().callsMax
    let thread = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let client = HTTPClient(eventLoopGroupProvider: .shared(thread), configuration: options.clientConfiguration)
    do {
        let tracker = Tracker(
            ledger: ledger, appStore: .live(options, client: client) { logger.warning("\($0)") },
            options: TrackerOptions(
                speedup: settings.pollSpeedup, leaseSeconds: settings.leaseSeconds,
                executor: EventLoopExecutor(thread.next())), logger: logger)
        let result = try await body(tracker)
        try await client.shutdown()
        try await thread.shutdownGracefully()
        return result
    } catch {
        // The first error is the one worth telling; what does not shut down ends with the process anyway.
        try? await client.shutdown()
        try? await thread.shutdownGracefully()
        throw error
    }
}
