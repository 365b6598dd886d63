import Hummingbird
import HummingbirdCore
import Logging
import ServiceLifecycle
package import Tracking

/// The server of `/metrics`, `/healthz` and `/readyz` for a worker that serves nothing else.
package struct MetricsServer: Service {
    /// The most open connections: enough for a scraper or two.
    static let connectionsMax = 16

    private let tracker: Tracker
    private let metrics: MetricsRegistry
    private let host: String
    private let port: Int
    private let onListening: (@Sendable (Int) async -> Void)?
    /// The limits that it imposes on its callers; tests use others.
    var limits = ServerLimits()

    /// Creates a server of a tracker's metrics.
    /// - Parameters:
    ///   - tracker: The tracker whose ledger is served.
    ///   - metrics: The metrics of the process.
    ///   - host: The address to listen on.
    ///   - port: The port to listen on; 0 takes a free one.
    ///   - onListening: Called with the port once connections are accepted.
    package init(
        tracker: Tracker, metrics: MetricsRegistry, host: String, port: Int,
        onListening: (@Sendable (Int) async -> Void)? = nil
    ) {
        self.tracker = tracker
        self.metrics = metrics
        self.host = host
        self.port = port
        self.onListening = onListening
    }

    /// Answers until graceful shutdown; throws when the address cannot be bound.
    package func run() async throws {
        try await application.run()
    }

    /// The HTTP application, for `run` and for tests.
    var application: some ApplicationProtocol {
        let router = ListingRouter()
        router.add(middleware: ProblemMiddleware())
        let routes = router.group().add(middleware: RequireWholePath())
        Health(ledger: tracker.ledger).addRoutes(to: routes, brief: routes)
        MetricsPage(metrics, of: tracker).addRoute(to: routes)
        return Application(
            router: router,
            server: .http1(configuration: .init(idleTimeout: .seconds(limits.idleSeconds))),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), serverName: HTTPServer.name,
                availableConnectionsDelegate: .maximum(Self.connectionsMax, logger: tracker.logger)),
            onServerRunning: { channel in await onListening?(channel.localAddress?.port ?? port) },
            logger: tracker.logger)
    }
}
