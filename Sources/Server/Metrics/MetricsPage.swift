import CoreMetrics
import Hummingbird
import Ledger
import Logging
import Subscriptions
import Tracking

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

    /// Returns the current text.
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
        let load = ledger.operations.databaseLoad
        registry.gauge(.databaseWaiting, [("kind", "read")]).set(load.waitingReads)
        registry.gauge(.databaseWaiting, [("kind", "transaction")]).set(load.waitingTransactions)
        registry.gauge(.databaseConnections).set(load.transactionConnections)
        return MetricsText.text(of: registry.contents)
    }

    private func read() async {
        do {
            let ledger = ledger
            show(try await within(Self.secondsMax) { try await ledger.operations.gauges() })
            registry.gauge(.databaseUp).set(1)
        } catch {
            logger.debug("the database gave no metrics: \(error)")
            for metric in Metric.ofDatabase + Metric.ofBusiness { registry.clear(metric) }
            registry.gauge(.databaseUp).set(0)
        }
    }

    private func readBusiness() async {
        let ledger = ledger
        let found: [BusinessGauge]
        do {
            found = try await within(Self.businessSecondsMax) { try await ledger.operations.businessGauges() }
        } catch {
            logger.debug("the database gave no figures of the business: \(error)")
            found = []
            // The next scrape asks again, because a database that comes back has them at once.
            businessReadAt = nil
        }
        for metric in Metric.ofBusiness { registry.clear(metric) }
        for gauge in found {
            let currency = gauge.currency.isEmpty ? [] : [("currency", gauge.currency)]
            let labels = [("app", gauge.bundleID.text), ("environment", gauge.environment.rawValue)] + currency
            registry.gauge(gauge.figure.metric, labels).set(gauge.value)
        }
    }

    private func within<Value: Sendable>(
        _ seconds: Int, _ read: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup { group in
            group.addTask { try await read() }
            group.addTask {
                try await Task.sleep(for: .seconds(seconds))
                throw CancellationError()
            }
            defer { group.cancelAll() }
            guard let first = try await group.next() else { throw CancellationError() }
            return first
        }
    }

    private func show(_ gauges: LedgerGauges) {
        for lane in gauges.lanes {
            let labels = [("app", lane.bundleID.text), ("lane", "\(lane.lane)")]
            registry.gauge(.due, labels).set(lane.due)
            registry.gauge(.dueLag, labels).set(lane.lagSeconds)
        }
        for app in gauges.apps {
            let labels = [("app", app.bundleID.text)]
            registry.gauge(.budgetRate, labels).set(app.callsPerSecond)
            registry.gauge(.budgetTokens, labels).set(app.tokens)
            registry.gauge(.breakerFailures, labels).set(app.failures)
            for environment in [StoreEnvironment.production, .sandbox] {
                let place = labels + [("environment", environment.rawValue)]
                registry.gauge(.paused, place).set(app.paused.contains(environment) ? 1 : 0)
            }
            registry.gauge(.incident, labels).set(app.hasIncident ? 1 : 0)
            registry.gauge(.unreadClaims, labels).set(app.unreadClaims)
        }
        for standing in gauges.invariants {
            registry.gauge(.violations, [("check", standing.name)]).set(standing.violations)
        }
        for (webhook, isInTrouble) in gauges.webhooks {
            let labels = [("webhook", "\(webhook.id)")]
            registry.gauge(.webhookBehind, labels).set(webhook.behind)
            registry.gauge(.webhookWaiting, labels).set(webhook.waiting)
            registry.gauge(.webhookTrouble, labels).set(isInTrouble ? 1 : 0)
        }
        registry.gauge(.feedPosition).set(gauges.feedPosition)
        registry.gauge(.feedWaiting).set(gauges.unsequencedEvents)
        registry.gauge(.feedLag).set(gauges.feedLagSeconds)
        registry.gauge(.workers).set(gauges.workers)
        registry.gauge(.appleFailures).set(gauges.appleFailures)
    }
}

extension Metric {
    /// The metrics read from the database. They are absent while it does not answer.
    static let ofDatabase: [Metric] = [
        .due, .dueLag, .budgetRate, .budgetTokens, .breakerFailures, .appleFailures, .paused, .incident, .violations,
        .feedPosition, .feedWaiting, .feedLag, .webhookBehind, .webhookWaiting, .webhookTrouble, .workers,
    ]

    /// The figures of the business, which are read from the database too.
    static let ofBusiness = BusinessGauge.Figure.allCases.map(\.metric)
}

extension BusinessGauge.Figure {
    /// The metric that shows it.
    fileprivate var metric: Metric {
        switch self {
        case .entitled: .entitled
        case .paying: .paying
        case .trial: .trials
        case .gracePeriod: .grace
        case .billingRetry: .billingRetry
        case .mrr: .monthlyRevenue
        }
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
