import CoreMetrics
import Hummingbird
import HummingbirdCore
import Logging
import Metrics
package import ServiceLifecycle
import Subscriptions
import Synchronization
package import Tracking

/// The text of `/metrics`: the counts of this process, and the database's numbers about the whole installation.
///
/// The database is queried at most once in `secondsBetween`, by bounded statements and for at most `secondsMax`, so
/// that a scraper is never a burden. While it does not answer, its numbers are absent rather than old. The figures of the
/// business cost more and change slowly, so they are read apart and reused longer.
actor MetricsPage {
    /// How long the database's numbers are reused, in seconds.
    static let secondsBetween = 5
    /// How long the database may take, in seconds.
    static let secondsMax = 2
    /// How long the figures of the business are reused, in seconds.
    static let businessSecondsBetween = 60
    /// How long the database may take for them, in seconds.
    static let businessSecondsMax = 5

    private let ledger: SubscriptionLedger
    private let registry: MetricsRegistry
    private let logger: Logger
    private let now: @Sendable () -> ContinuousClock.Instant
    private var readAt: ContinuousClock.Instant?
    private var businessReadAt: ContinuousClock.Instant?

    init(
        _ registry: MetricsRegistry, of tracker: Tracker,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        ledger = tracker.ledger
        self.registry = registry
        logger = tracker.logger
        self.now = now
    }

    func text() async -> String {
        let time = now()
        if readAt.map({ time >= $0 + .seconds(Self.secondsBetween) }) ?? true {
            readAt = time
            await read()
        }
        if businessReadAt.map({ time >= $0 + .seconds(Self.businessSecondsBetween) }) ?? true {
            businessReadAt = time
            await readBusiness()
        }
        for gauge in ledger.operations.loadGauges { registry.gauge(gauge.metric, gauge.labels).set(gauge.value) }
        return MetricsText.text(of: registry.contents)
    }

    private func read() async {
        if let found = await gauges("metrics", within: Self.secondsMax, { try await $0.gauges() }) {
            show(found)
            registry.gauge(.databaseUp).set(1)
        } else {
            for metric in Metric.ofDatabase + Metric.ofBusiness { registry.clear(metric) }
            registry.gauge(.databaseUp).set(0)
            // What was cleared is read again as soon as the database answers, not when its minute is over.
            businessReadAt = nil
        }
    }

    private func readBusiness() async {
        let found = await gauges("figures of the business", within: Self.businessSecondsMax) {
            try await $0.businessGauges()
        }
        // The next scrape asks again, because a database that comes back has them at once.
        if found == nil { businessReadAt = nil }
        for metric in Metric.ofBusiness { registry.clear(metric) }
        show(found ?? [])
    }

    /// Reads gauges; nil, with a line in the log, where the database does not give them in time.
    private func gauges(
        _ what: String, within seconds: Int,
        _ read: @escaping @Sendable (LedgerOperations) async throws -> [LedgerGauge]
    ) async -> [LedgerGauge]? {
        do {
            let operations = ledger.operations
            if let found = try await within(.seconds(seconds), { try await read(operations) }) { return found }
            throw CancellationError()
        } catch {
            // What does not pass by itself, such as a missing right, an operator must read.
            let isFault = error.storageFailure.map { !$0.mayPass && !$0.isStop } ?? false
            logger.log(level: isFault ? .warning : .debug, "the database gave no \(what): \(error)")
            return nil
        }
    }

    private func show(_ gauges: [LedgerGauge]) {
        for gauge in gauges { registry.gauge(gauge.metric, gauge.labels).set(gauge.value) }
    }
}

extension MetricsPage {
    /// Adds `GET /metrics`: the metrics of this process and of the whole installation, for Prometheus.
    nonisolated func addRoute(to routes: some RouterMethods<CallerContext>) {
        routes.get("/metrics") { _, _ in
            Response(
                status: .ok, headers: [.contentType: MetricsText.contentType, .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: await self.text())))
        }
    }
}

/// The server of `/metrics`, `/healthz` and `/readyz` for a worker that serves nothing else.
struct MetricsServer: Service {
    /// The most open connections: enough for a scraper or two.
    static let connectionsMax = 16

    let tracker: Tracker
    let metrics: MetricsRegistry
    let host: String
    let port: Int
    var onListening: (@Sendable (Int) async -> Void)?
    /// The limits that it imposes on its callers; tests use others.
    var limits = ServerLimits(connectionsMax: connectionsMax)

    func run() async throws { try await application.run() }

    var application: some ApplicationProtocol {
        let router = ListingRouter()
        router.add(middleware: ProblemMiddleware())
        let routes = router.group()
        Health(ledger: tracker.ledger, servesLookups: false).addRoutes(to: routes, brief: routes)
        MetricsPage(metrics, of: tracker).addRoute(to: routes)
        return router.application(
            host: host, port: port, limits: limits, logger: tracker.logger, onListening: onListening)
    }
}

extension MetricsRegistry {
    /// Returns the server of this process's metrics and its tracker's. It answers until graceful shutdown, and throws when
    /// the address cannot be bound. A port of 0 takes a free one, and `onListening` gets it once connections are accepted.
    package func server(
        of tracker: Tracker, host: String, port: Int, onListening: @escaping @Sendable (Int) async -> Void
    ) -> any Service {
        MetricsServer(tracker: tracker, metrics: self, host: host, port: port, onListening: onListening)
    }
}

/// The counters of requests by method, route and status, so that the hot path needs a single dictionary lookup.
final class RequestCounters: Sendable {
    struct Key: Hashable, Sendable {
        let method: HTTPRequest.Method
        let route: String
        let status: Int
    }

    private let registry: MetricsRegistry
    private let known = Mutex<[Key: (Counter, Recorder)]>([:])

    init(registry: MetricsRegistry) { self.registry = registry }

    func count(_ key: Key, elapsed: Duration) {
        let (counter, recorder) = known.withLock { known in
            if let pair = known[key] { return pair }
            let pair = made(for: key)
            // A caller may invent methods. Those are counted together and not cached one by one.
            if Self.methods.contains(key.method) { known[key] = pair }
            return pair
        }
        counter.increment()
        recorder.record(elapsed.seconds)
    }

    private static let methods: Set<HTTPRequest.Method> = [.get, .head, .post, .put, .patch, .delete, .options]

    private func made(for key: Key) -> (Counter, Recorder) {
        let method = Self.methods.contains(key.method) ? key.method.rawValue : "other"
        let labels = [("method", method), ("route", key.route), ("status", String(key.status))]
        return (registry.counter(.requests, labels), registry.histogram(.requestSeconds, [("route", key.route)]))
    }
}

/// The counters of lookups by the source of their answers.
struct LookupCounters: Sendable {
    private let stored, computed, history: Counter

    init(registry: MetricsRegistry) {
        func counter(_ source: CustomerEntitlements.Source) -> Counter {
            registry.counter(.lookups, [("source", source.rawValue)])
        }
        (stored, computed, history) = (counter(.stored), counter(.computed), counter(.history))
    }

    func count(_ source: CustomerEntitlements.Source) {
        switch source {
        case .stored: stored.increment()
        case .computed: computed.increment()
        case .history: history.increment()
        }
    }
}
