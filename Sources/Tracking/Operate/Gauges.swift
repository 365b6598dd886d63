import Postgres
import SQL
import Subscriptions

/// A number about the whole ledger for `/metrics`, read by a few bounded statements, whatever the number of receipts.
package struct LedgerGauge: Sendable {
    /// The most receipts or events that are counted, so that a large backlog costs no more than a small one.
    package static let countedMax: Int32 = 10_000

    package let metric: Metric
    package let labels: [(String, String)]
    package let value: Double
}

extension Metric {
    fileprivate static let ofLanes = [due, dueLag]
    fileprivate static let ofApps = [budgetRate, budgetTokens, breakerFailures, incident, unreadClaims]
    fileprivate static let ofEnvironments = [paused, previousSecret]
    fileprivate static let ofWebhooks = [webhookBehind, webhookWaiting, webhookTrouble]
    fileprivate static let ofAll = [feedPosition, feedWaiting, feedLag, workers, appleFailures]

    /// The metrics read from the database. They are absent while it does not answer.
    package static let ofDatabase = ofLanes + ofApps + ofEnvironments + [violations] + ofWebhooks + ofAll

    /// The figures of the business, which are read from the database too, more slowly.
    package static let ofBusiness = [entitled, paying, trials, grace, billingRetry, monthlyRevenue]
}

extension LedgerOperations {
    /// Returns the numbers of the whole ledger now.
    package func gauges() async throws -> [LedgerGauge] {
        let countedMax = Parameter.int4(LedgerGauge.countedMax)
        async let lanes = gauges(Metric.ofLanes, by: ["app", "lane"], Queries.gaugeLanes, [countedMax])
        async let apps = gauges(Metric.ofApps, by: ["app"], Queries.gaugeApps)
        async let paused = gauges(Metric.ofEnvironments, by: ["app", "environment"], Queries.gaugePaused)
        async let all = gauges(Metric.ofAll, by: [], Queries.gaugeWhole, [countedMax])
        async let invariants = invariantStandings()
        async let webhooks = ledger.webhooks.all()
        let now = try await ledger.now()
        let violations = try await invariants.map { standing in
            LedgerGauge(metric: .violations, labels: [("check", standing.name)], value: Double(standing.violations))
        }
        let ofWebhooks = try await webhooks.flatMap { webhook in
            let values: [Double] = [
                Double(webhook.behind), Double(webhook.waiting), webhook.trouble(at: now) == nil ? 0 : 1,
            ]
            return zip(Metric.ofWebhooks, values).map { metric, value in
                LedgerGauge(metric: metric, labels: [("webhook", "\(webhook.id)")], value: value)
            }
        }
        return try await lanes + apps + paused + all + violations + ofWebhooks
    }

    /// Returns the numbers of a statement whose columns have the names of metrics and of labels.
    private func gauges(
        _ metrics: [Metric], by labels: [String], _ statement: SQLFile, _ parameters: [Parameter] = []
    ) async throws -> [LedgerGauge] {
        try await query(statement, parameters).flatMap { row in
            let labels = try labels.map { ($0, try row.text($0)) }
            return try metrics.map { metric in
                LedgerGauge(metric: metric, labels: labels, value: try row.float8(metric.rawValue))
            }
        }
    }

    /// Returns the figures of the business of every app. Their cost does not grow with the number of all subscriptions.
    package func businessGauges() async throws -> [LedgerGauge] {
        try await query(Queries.gaugeBusiness).map { row in
            let currency = try row.text("currency")
            let labels = try ["app", "environment"].map { ($0, try row.text($0)) }
            return LedgerGauge(
                metric: try row.word("metric"), labels: labels + (currency.isEmpty ? [] : [("currency", currency)]),
                value: try row.float8("value"))
        }
    }

    /// The present load of this process's connections, and the state of its standby as it was found last.
    package var loadGauges: [LedgerGauge] {
        let load = database.load
        let ofConnections = [
            LedgerGauge(metric: .databaseWaiting, labels: [("kind", "read")], value: Double(load.waitingReads)),
            LedgerGauge(
                metric: .databaseWaiting, labels: [("kind", "transaction")], value: Double(load.waitingTransactions)),
            LedgerGauge(metric: .databaseConnections, labels: [], value: Double(load.transactionConnections)),
        ]
        guard let (found, _) = reads.known else { return ofConnections }
        return ofConnections
            + StandbyStanding.allCases.filter { $0 != .none }.map { state in
                LedgerGauge(metric: .standby, labels: [("state", state.rawValue)], value: state == found ? 1 : 0)
            }
    }
}
