import Hummingbird
import HummingbirdCore
import Ledger
import Logging
import ServiceLifecycle
import Tracking

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
    private let keys: KeyRing
    private let servesAdmin: Bool

    /// Creates a server for `tracker`.
    /// - Parameters:
    ///   - tracker: The tracker that verifies and answers.
    ///   - metrics: The metrics of the process, which it serves and adds its own to.
    ///   - host: The address to listen on.
    ///   - port: The port to listen on; 0 takes a free one.
    ///   - logger: Gets one line per request at debug level, never a secret or a receipt.
    ///   - files: The number of files that the process may have open; nil where there is no limit.
    ///   - servesAdmin: Whether the pages under `/admin` are served too.
    ///   - onListening: Called with the port once connections are accepted.
    package init(
        tracker: Tracker, metrics: MetricsRegistry, host: String, port: Int, logger: Logger, files: OpenFiles? = nil,
        servesAdmin: Bool = true, onListening: (@Sendable (Int) async -> Void)? = nil
    ) {
        var limits = ServerLimits()
        if let files { limits.connectionsMax = files.connectionsMax }
        self.init(
            tracker: tracker, metrics: metrics, host: host, port: port, logger: logger, onListening: onListening,
            limits: limits,
            keys: KeyRing { try await tracker.ledger.key(withSecret: $0) }, servesAdmin: servesAdmin)
    }

    /// Creates a server with its own limits and keys, for tests.
    init(
        tracker: Tracker, metrics: MetricsRegistry = MetricsRegistry(), host: String = "127.0.0.1", port: Int = 0,
        logger: Logger,
        onListening: (@Sendable (Int) async -> Void)? = nil, limits: ServerLimits, keys: KeyRing,
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
        async let _: Void = tracker.maintainRightLog()
        try await application.run()
        logger.info("server stopped")
    }

    /// The HTTP application, for `run` and for tests.
    var application: some ApplicationProtocol {
        let (gate, counters) = (Gate(keys: keys), RequestCounters(registry: metrics))
        let counted = LookupCounters(registry: metrics)
        let lookups = GetEntitlements(
            tracker: tracker, apps: KnownApps(tracker.ledger),
            rights: RightsLookup(tracker.ledger) { source, answers in counted.count(answers, from: source) })
        let atOnce = EntitlementsAtOnce(lookups: lookups, gate: gate, counters: counters)
        // `EntitlementsAtOnce` logs nothing. At debug level every request takes the usual way, which logs it.
        let isLogged = logger.logLevel <= .debug
        let room = ConnectionLimit(connectionsMax: limits.connectionsMax, logger: logger)
        return Application(
            router: router(gate, lookups, counters),
            server: HTTPServerBuilder {
                let connection = ClosingWhenAsked(connection: HTTP1Channel(responder: $0, configuration: http))
                let answering = AnsweringAtOnce(connection: connection) { isLogged ? nil : atOnce.answer($0) }
                return OnEventLoop(connection: LimitedConnection(connection: answering, room: room))
            },
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), serverName: Self.name,
                availableConnectionsDelegate: .maximum(
                    limits.connectionsMax + ServerLimits.connectionsClosingMax, logger: logger)),
            onServerRunning: { channel in await onListening?(channel.localAddress?.port ?? port) },
            logger: logger)
    }

    private var http: HTTP1Channel.Configuration {
        .init(
            additionalChannelHandlers: [
                RequestTurns(limits: limits, logger: logger), ExplainUnreadable(limits: limits, logger: logger),
                AnswerExpectation(),
            ],
            idleTimeout: .seconds(limits.idleSeconds),
            httpDecoderConfiguration: .init(
                maxHeaderFieldSize: limits.headerBytesMax, maxHeaderListSize: limits.headerListBytesMax,
                maxHeaderFieldCount: limits.headerFieldsMax))
    }

    private func router(
        _ gate: Gate, _ lookups: GetEntitlements, _ counters: RequestCounters
    ) -> Router<CallerContext> {
        let router = Router(context: CallerContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: CountRequests(counters: counters))
        router.add(middleware: AnswerProblems())
        router.add(middleware: AskForBody())
        let (apps, rights) = (lookups.apps, lookups.rights)
        let routes = [
            PostReceipt(tracker: tracker, limits: limits).route(behind: gate),
            GetReceipt(ledger: tracker.ledger).route(behind: gate),
            lookups.route(behind: gate),
            PostBatch(tracker: tracker, apps: apps, rights: rights, limits: limits).route(behind: gate),
            GetCustomer(tracker: tracker, apps: apps).route(behind: gate),
            GrantRoutes(ledger: tracker.ledger, limits: limits).route(behind: gate),
            GetEvents(ledger: tracker.ledger).route(behind: gate),
            PostNotification(tracker: tracker, metrics: metrics, limits: limits).route,
            Route.isAlive, Route.isReady(tracker.ledger), Route.metrics(MetricsPage(metrics, of: tracker)),
            Route.openAPI,
        ]
        let pages = servesAdmin ? AdminSite(tracker: tracker, keys: keys).routes : []
        for route in routes + pages { route.add(to: router) }
        return router
    }
}
