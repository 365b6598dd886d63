import Hummingbird
import HummingbirdCore
import Ledger
package import Logging
import ServiceLifecycle
package import Tracking

/// The HTTP API as a service. It answers until graceful shutdown, which first finishes the requests under way.
///
/// Docs: `openapi.yaml`, which is served at `/openapi.yaml`.
package struct HTTPServer: Service {
    /// The server's name in the responses.
    static let name = "perennial"

    private let tracker: Tracker
    private let metrics: MetricsRegistry
    private let host: String
    private let port: Int
    private let logger: Logger
    private let onListening: (@Sendable (Int) async -> Void)?
    private let limits: ServerLimits
    private let keys: KeyCache
    private let servesAdmin: Bool

    /// Creates a server for `tracker`.
    /// - Parameters:
    ///   - tracker: The tracker that verifies and answers.
    ///   - metrics: The metrics of the process, which it serves and adds its own to.
    ///   - host: The address to listen on.
    ///   - port: The port to listen on; 0 takes a free one.
    ///   - logger: Gets one line per request at debug level, never a secret or a receipt.
    ///   - files: The number of files that the process may have open; nil where there is no limit.
    ///   - trustedProxies: The reverse proxies that say whose requests they pass on.
    ///   - servesAdmin: Whether the pages under `/admin` are served too.
    ///   - onListening: Called with the port once connections are accepted.
    package init(
        tracker: Tracker, metrics: MetricsRegistry, host: String, port: Int, logger: Logger, files: OpenFiles? = nil,
        trustedProxies: TrustedProxies = TrustedProxies(), servesAdmin: Bool = true,
        onListening: (@Sendable (Int) async -> Void)? = nil
    ) {
        var limits = ServerLimits()
        if let files { limits.connectionsMax = files.connectionsMax }
        limits.trustedProxies = trustedProxies
        self.init(
            tracker: tracker, metrics: metrics, host: host, port: port, logger: logger, onListening: onListening,
            limits: limits,
            keys: KeyCache { try await tracker.ledger.apps.key(withSecret: $0) }, servesAdmin: servesAdmin)
    }

    /// Creates a server with its own limits and keys, for tests.
    init(
        tracker: Tracker, metrics: MetricsRegistry = MetricsRegistry(), host: String = "127.0.0.1", port: Int = 0,
        logger: Logger,
        onListening: (@Sendable (Int) async -> Void)? = nil, limits: ServerLimits, keys: KeyCache,
        servesAdmin: Bool = true
    ) {
        self.tracker = tracker
        self.metrics = metrics
        self.host = host
        self.port = port
        self.logger = logger
        self.onListening = onListening
        self.limits = limits
        self.keys = keys
        self.servesAdmin = servesAdmin
    }

    /// Answers until graceful shutdown; throws when the address cannot be bound.
    package func run() async throws {
        logger.info("server started", metadata: ["connections_max": "\(limits.connectionsMax)"])
        // Cancelled and awaited when the application ends.
        async let _: Void = tracker.maintainFeedPlace()
        try await application.run()
        logger.info("server stopped")
    }

    /// The HTTP application, for `run` and for tests.
    var application: some ApplicationProtocol {
        Application(
            router: router,
            server: HTTPServerBuilder { OnEventLoop(connection: HTTP1Channel(responder: $0, configuration: http)) },
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), serverName: Self.name,
                availableConnectionsDelegate: .maximum(limits.connectionsMax, logger: logger)),
            onServerRunning: { channel in await onListening?(channel.localAddress?.port ?? port) },
            logger: logger)
    }

    private var http: HTTP1Channel.Configuration {
        .init(
            additionalChannelHandlers: [ExplainUnreadable(limits: limits, logger: logger)],
            idleTimeout: .seconds(limits.idleSeconds),
            httpDecoderConfiguration: .init(
                maxHeaderFieldSize: limits.headerBytesMax, maxHeaderListSize: limits.headerListBytesMax,
                maxHeaderFieldCount: limits.headerFieldsMax))
    }

    private var router: ListingRouter {
        let router = ListingRouter()
        let authenticator = APIKeyAuthenticator(keys: keys)
        let (apps, counters) = (KnownApps(tracker.ledger), LookupCounters(registry: metrics))
        router.add(middleware: CountRequests(counters: RequestCounters(registry: metrics)))
        router.add(middleware: ProblemMiddleware(servesAdmin: servesAdmin))
        let brief = router.group().add(middleware: RequireWholePath())
        let routes = brief.group().add(middleware: OffEventLoop())
        let keyed = routes.behind(authenticator)
        let uploads = ReceiptUploads(tracker: tracker, limits: limits)
        let calls = DeviceCalls(orders: tracker.ledger.orders, limits: limits)
        PostReceipt(uploads: uploads).addRoute(to: keyed)
        GetReceipt(ledger: tracker.ledger).addRoute(to: keyed)
        GetEntitlements(tracker: tracker, apps: apps, counters: counters).addRoute(to: brief.behind(authenticator))
        PostBatch(tracker: tracker, apps: apps, counters: counters, limits: limits).addRoute(to: keyed)
        GetCustomer(tracker: tracker, apps: apps).addRoute(to: keyed)
        ListRoutes(tracker: tracker, apps: apps).addRoutes(to: keyed)
        OrderRoutes(ledger: tracker.ledger, apps: apps, limits: limits).addRoutes(to: keyed)
        OfferRoutes(ledger: tracker.ledger, apps: apps, limits: limits).addRoutes(to: keyed)
        GetDeliveries(ledger: tracker.ledger, apps: apps).addRoute(to: keyed)
        DeliveryRoutes(ledger: tracker.ledger, apps: apps, limits: limits).addRoutes(to: keyed)
        GrantRoutes(ledger: tracker.ledger, limits: limits).addRoutes(to: keyed)
        GetEvents(ledger: tracker.ledger).addRoute(to: keyed)
        WebhookRoutes(tracker: tracker, limits: limits).addRoutes(to: keyed)
        PostNotification(tracker: tracker, metrics: metrics, limits: limits).addRoute(to: routes)
        PostOrderReceipt(uploads: uploads, calls: calls).addRoute(to: routes)
        PostOrderState(ledger: tracker.ledger, calls: calls).addRoute(to: routes)
        Health(ledger: tracker.ledger).addRoutes(to: routes, brief: brief)
        MetricsPage(metrics, of: tracker).addRoute(to: routes)
        routes.addDescription()
        if servesAdmin { AdminSite(tracker: tracker, keys: keys, proxies: limits.trustedProxies).addRoutes(to: routes) }
        return router
    }
}
