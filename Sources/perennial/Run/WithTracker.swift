import AppStore
import AsyncHTTPClient
import Ledger
import Logging
import Metrics
import NIOCore
import NIOPosix
import Server
import Tracking

/// Creates the tracker for `body`, which counts in `metrics`. Only this function creates HTTP clients.
///
/// Calls and checks share one thread: a check wakes no other thread on its way, and the other processors remain free
/// for PostgreSQL and for lookups.
func withTracker<Result: Sendable>(
    _ settings: Settings, ledger: SubscriptionLedger, metrics: any MetricsFactory = NOOPMetricsHandler.instance,
    _ body: (Tracker) async throws -> Result
) async throws -> Result {
    let logger = settings.logger
    var options = AppStoreOptions(productionURL: settings.appStoreURL, sandboxURL: settings.appStoreSandboxURL)
    // All calls of one check end within half the lease, so that an answer is settled before the lease ends.
    options.deadline = min(options.deadline, .seconds(settings.leaseSeconds / 2))
    // A connection attempt fails before the check's deadline, so that there is a reason to report.
    options.connectTimeout = min(options.connectTimeout, options.deadline / 2)
    options.trustedRoots = settings.appStoreRoots
    options.connectionsPerHostMax = OpenFiles.raised().callsMax
    let thread = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    do {
        let result = try await HTTPClient.withHTTPClient(
            eventLoopGroup: thread, configuration: options.clientConfiguration
        ) { client in
            let signedTexts = SignedTextVerifier(trusting: try settings.appStoreRoots.map(SigningRoot.init) ?? .apple)
            let serverOptions = ServerAPIOptions(
                productionURL: settings.appStoreServerURL, sandboxURL: settings.appStoreServerSandboxURL,
                deadline: options.deadline)
            let server = ServerAPIClient.live(serverOptions, client: client, verifier: signedTexts)
            return try await body(
                Tracker(
                    ledger: ledger,
                    appStore: .live(options, client: client, server: server) { logger.warning("\($0)") },
                    options: TrackerOptions(
                        leaseSeconds: settings.leaseSeconds, executor: EventLoopExecutor(thread.next()),
                        callsMax: options.connectionsPerHostMax),
                    logger: logger, metrics: metrics, signedTexts: signedTexts, webhookSender: try .live()))
        }
        try await thread.shutdownGracefully()
        return result
    } catch {
        // The first error is the one to report; a failed shutdown ends with the process anyway.
        try? await thread.shutdownGracefully()
        throw error
    }
}
