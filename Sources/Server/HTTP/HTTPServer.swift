import Hummingbird
import HummingbirdCore
import JSON
package import Logging
import ServiceLifecycle
import Subscriptions
package import Tracking

/// The HTTP API as a service. It answers until graceful shutdown, which first finishes the requests under way.
///
/// Docs: `openapi.yaml`, which is served at `/openapi.yaml`.
package struct HTTPServer: Service {
    static let name = "perennial"

    let tracker: Tracker
    var metrics = MetricsRegistry()
    var host = "127.0.0.1"
    /// The port to listen on; 0 takes a free one.
    var port = 0
    let logger: Logger
    var onListening: (@Sendable (Int) async -> Void)?
    let limits: ServerLimits
    let keys: KeyCache
    var servesAdmin = true

    /// Answers until graceful shutdown; throws when the address cannot be bound.
    package func run() async throws {
        logger.info("server started", metadata: ["connections_max": "\(limits.connectionsMax)"])
        // Cancelled and awaited when the application ends.
        async let _: Void = tracker.maintainFeedPlace()
        async let _: Void = tracker.watchStandby()
        try await application.run()
        logger.info("server stopped")
    }

    /// The HTTP application, for `run` and for tests.
    var application: some ApplicationProtocol {
        router.application(host: host, port: port, limits: limits, logger: logger, onListening: onListening)
    }

    private var router: ListingRouter {
        let router = ListingRouter()
        let authenticator = APIKeyAuthenticator(keys: keys)
        let (apps, counters) = (KnownApps(tracker), LookupCounters(registry: metrics))
        router.add(
            middleware: ProblemMiddleware(counters: RequestCounters(registry: metrics), servesAdmin: servesAdmin))
        let brief = router.group()
        let routes = brief.group().add(middleware: OffEventLoop())
        let keyed = KeyedRoutes(routes: routes, authenticator: authenticator)
        let uploads = ReceiptUploads(tracker: tracker, limits: limits)
        let calls = DeviceCalls(
            ledger: tracker.ledger.orders, limits: limits.narrowed(bytesMax: DeviceCalls.bodyBytesMax))
        PostReceipt(uploads: uploads).addRoute(to: keyed)
        GetReceipt(ledger: tracker.ledger, apps: apps).addRoute(to: keyed)
        GetEntitlements(ledger: tracker.ledger, apps: apps, counters: counters)
            .addRoute(to: KeyedRoutes(routes: brief, authenticator: authenticator))
        PostBatch(ledger: tracker.ledger, apps: apps, counters: counters, limits: limits).addRoute(to: keyed)
        CustomerRoutes(tracker: tracker, apps: apps).addRoutes(to: keyed)
        OrderRoutes(ledger: tracker.ledger, apps: apps, limits: limits).addRoutes(to: keyed)
        OfferRoutes(ledger: tracker.ledger, apps: apps, limits: limits).addRoutes(to: keyed)
        DeliveryRoutes(ledger: tracker.ledger, apps: apps, limits: limits).addRoutes(to: keyed)
        GrantRoutes(ledger: tracker.ledger, apps: apps, limits: limits).addRoutes(to: keyed)
        GetEvents(ledger: tracker.ledger, watch: FeedWatch { try await tracker.ledger.feed.head() }).addRoute(to: keyed)
        WebhookRoutes(tracker: tracker, limits: limits).addRoutes(to: keyed)
        PostNotification(tracker: tracker, metrics: metrics, limits: limits).addRoute(to: routes)
        DeviceRoutes(uploads: uploads, calls: calls).addRoutes(to: routes)
        Health(ledger: tracker.ledger, servesLookups: true).addRoutes(to: routes, brief: brief)
        MetricsPage(metrics, of: tracker).addRoute(to: routes)
        routes.addFile("/openapi.yaml", type: "application/yaml", EmbeddedFiles.openapi, cachedSeconds: 3600)
        if servesAdmin { AdminSite(tracker: tracker, keys: keys, proxies: limits.trustedProxies).addRoutes(to: routes) }
        return router
    }
}

extension HTTPServer {
    /// Creates a server for `tracker`, which serves the metrics of the process and adds its own to them.
    ///
    /// A port of 0 takes a free one, and `onListening` gets it once connections are accepted. The log gets one line per
    /// request at debug level, never a secret or a receipt. Without `files`, open files have no limit.
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
            limits: limits, keys: KeyCache { try await tracker.ledger.apps.key(withSecret: $0) },
            servesAdmin: servesAdmin)
    }
}

/// A router that also answers the methods that a path does not serve: OPTIONS lists the others, and the rest gets 405.
/// Hummingbird's own router answers 404 to them.
final class ListingRouter: RouterMethods, HTTPResponderBuilder {
    typealias Context = CallerContext

    /// Every method of RFC 9110 and RFC 5789, and QUERY.
    private static let knownMethods: [HTTPRequest.Method] =
        [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
        + [HTTPRequest.Method(rawValue: "QUERY")].compactMap { $0 }

    private let router = Router(context: CallerContext.self, options: .autoGenerateHeadEndpoints)
    /// The methods of each path whose other methods have no answer yet.
    private var methods: [String: Set<HTTPRequest.Method>] = [:]

    @discardableResult
    func add(middleware: any MiddlewareProtocol<Request, Response, CallerContext>) -> Self {
        router.add(middleware: middleware)
        return self
    }

    /// Adds a route. GET adds HEAD by itself.
    @discardableResult
    func on<Responder: HTTPResponder>(
        _ path: RouterPath, method: HTTPRequest.Method, responder: Responder
    ) -> Self where Responder.Context == CallerContext {
        methods[path.description, default: []].insert(method)
        router.on(path, method: method, responder: responder)
        return self
    }

    /// Returns the responder, which answers every known method of every path.
    func buildResponder() -> RouterResponder<CallerContext> {
        for (path, served) in methods { answerOthers(than: served, at: RouterPath(path)) }
        methods = [:]
        return router.buildResponder()
    }

    /// Returns an application that answers on an address, and says its port once it accepts connections.
    func application(
        host: String, port: Int, limits: ServerLimits, logger: Logger,
        onListening: (@Sendable (Int) async -> Void)?
    ) -> some ApplicationProtocol {
        let responder = buildResponder()
        return Application(
            responder: responder,
            server: HTTPServerBuilder { _ in Connections(responder: responder, limits: limits) },
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), serverName: HTTPServer.name,
                availableConnectionsDelegate: .maximum(limits.connectionsMax, logger: logger)),
            onServerRunning: { channel in await onListening?(channel.localAddress?.port ?? port) },
            logger: logger)
    }

    private func answerOthers(than served: Set<HTTPRequest.Method>, at path: RouterPath) {
        let allowed = Self.knownMethods.filter {
            served.contains($0) || $0 == .options || ($0 == .head && served.contains(.get))
        }
        let allow = allowed.map(\.rawValue).joined(separator: ", ")
        router.on(path, method: .options) { _, _ in Response(status: .noContent, headers: [.allow: allow]) }
        for method in Self.knownMethods where !allowed.contains(method) {
            router.on(path, method: method) { _, _ -> Response in
                throw Problem(.methodNotAllowed, "Here only \(allow) is answered.", headers: [.allow: allow])
            }
        }
    }
}

/// The limits that the server imposes on its callers.
struct ServerLimits: Sendable {
    /// The largest request body, in bytes. Receipts with long histories reach about 100 kB.
    var bodyBytesMax = 8 * 1024 * 1024
    /// How long a whole body may take to arrive, in seconds.
    var bodySecondsMax = 60.0
    var submission = SubmissionLimits()
    /// Seconds before Apple is asked again about a purchase that its answer lacks, and after a temporary problem.
    var absentSeconds: Double = 5
    /// How long the sender of a purchase waits at the most, in seconds.
    var purchaseSeconds: Double = 20
    /// How long a connection may be silent between requests or while its headers arrive, in seconds.
    var idleSeconds: Int64 = 60
    /// The largest header or request line, in bytes: a percent-encoded id of 10 kB fits and so gets its own problem.
    var headerBytesMax = 32 * 1024
    /// The largest total of a request's headers, in bytes.
    var headerListBytesMax = 48 * 1024
    var headerFieldsMax = 100
    /// The most open connections. Further ones wait until one ends.
    var connectionsMax = connectionsWanted
    /// The reverse proxies that say whose requests they pass on, for limits of an address.
    var trustedProxies = TrustedProxies()

    /// Returns the limits with at most these for the size of a body and the time until it has arrived.
    func narrowed(bytesMax: Int, secondsMax: Double = .infinity) -> ServerLimits {
        var limits = self
        limits.bodyBytesMax = min(bodyBytesMax, bytesMax)
        limits.bodySecondsMax = min(bodySecondsMax, secondsMax)
        return limits
    }

    /// How long the sender of an upload waits at the most, in seconds.
    func waitSeconds(for purpose: UploadPurpose) -> Double {
        switch purpose {
        case .purchase: purchaseSeconds
        case .launch, .restore: submission.answerSeconds
        }
    }

    /// The number of connections that one process wants, where the system allows it.
    static let connectionsWanted = 4096
}

/// `GET /healthz` and `GET /readyz`: whether the process is alive, and whether it can answer.
struct Health: Sendable {
    /// How long `/readyz` waits for each answer of the primary: a probe usually waits for a second.
    private static let patience = Duration.milliseconds(750)

    let ledger: SubscriptionLedger
    /// Whether it serves lookups, for which the account of a worker has no rights.
    let servesLookups: Bool

    /// Adds both routes. The first needs only microseconds, and no database.
    func addRoutes(to routes: RouterGroup<CallerContext>, brief: RouterGroup<CallerContext>) {
        brief.get("/healthz") { _, _ in Response(["status": "alive"]) }
        routes.get("/readyz") { _, _ in try await readiness() }
    }

    /// Returns whether lookups can be answered from a database whose schema fits this program and which it may read.
    /// Without the primary, a server with a standby stays ready: out of service it would answer no lookups, and
    /// writes are refused one by one.
    private func readiness() async throws -> Response {
        async let primary: Void = ledger.operations.requireMigrated(within: Self.patience)
        async let lookups: Void? = servesLookups ? ledger.customers.requireLookups(within: Self.patience) : nil
        let standby = await ledger.standby()
        do {
            try await primary
            _ = try await lookups
        } catch let error as LedgerError {
            throw Problem.unavailable(error.message, retryAfterSeconds: 5)
        } catch {
            guard let failure = error.storageFailure, failure.isLoss || failure.isTimeout, standby.canAnswer else {
                throw error
            }
            return Response(["status": "ready", "primary": "away", "standby": .string(standby.rawValue)])
        }
        guard standby != .none else { return Response(["status": "ready"]) }
        return Response(["status": "ready", "primary": "there", "standby": .string(standby.rawValue)])
    }
}

extension RouterMethods where Context == CallerContext {
    /// Adds a file that is embedded in the program, and that a browser may cache for some seconds.
    func addFile(_ path: RouterPath, type: String, _ text: String, cachedSeconds: Int) {
        get(path) { _, _ in
            Response(
                status: .ok, headers: [.contentType: type, .cacheControl: "public, max-age=\(cachedSeconds)"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
        }
    }
}

extension JSONText {
    /// Writes a member with an instant in ISO 8601, or `null`.
    mutating func member(_ name: StaticString, _ instant: Instant?) {
        guard let instant else { return member(name, JSONValue.null) }
        member(name, plain: instant.writeISO8601)
    }
}

extension Response {
    init(_ value: JSONValue, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) {
        self.init(JSONText(value), status: status, headers: headers)
    }

    /// Creates a JSON response from text that is already written.
    init(_ text: JSONText, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) {
        var fields = headers
        if !fields.contains(.contentType) { fields.append(.init(name: .contentType, value: "application/json")) }
        if !fields.contains(.cacheControl) { fields.append(.init(name: .cacheControl, value: "no-store")) }
        self.init(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: text.bytes)))
    }
}
