import Postgres
import SQL
package import Subscriptions

/// The metrics of the whole ledger, read by a few bounded statements, whatever the number of receipts.
package struct LedgerGauges: Sendable {
    /// The due receipts in one lane of one app.
    package struct LaneGauge: Sendable {
        package let bundleID: BundleID
        package let lane: Lane
        /// Receipts due and not claimed, counted up to `dueReceiptsMax`.
        package let due: Int64
        /// Seconds for which the first of them has been due; in the lane of imports, seconds since it was stored.
        package let lagSeconds: Double
    }

    /// The budget, the breaker and the incidents of one app.
    package struct AppGauge: Sendable {
        package let bundleID: BundleID
        /// Calls a second to Apple at present; 0 is unlimited.
        package let callsPerSecond: Double
        /// Calls that may be made at once, as of the last claim.
        package let tokens: Double
        /// Consecutive rounds of answers that mostly failed.
        package let failures: Int64
        /// The environments whose checks are paused at the moment.
        package let paused: Set<StoreEnvironment>
        /// Whether Apple refuses receipts in bulk.
        package let hasIncident: Bool
        /// Claims that Apple states and this version does not read.
        package let unreadClaims: Int64
    }

    /// The most receipts or events that are counted, so that a large backlog costs no more than a small one.
    package static let dueReceiptsMax: Int32 = 10_000

    /// Every lane of every app.
    package let lanes: [LaneGauge]
    /// Every app.
    package let apps: [AppGauge]
    /// The last result for each invariant.
    package let invariants: [InvariantStanding]
    /// The feed's last position.
    package let feedPosition: Int64
    /// Committed events without a position, counted up to `dueReceiptsMax`.
    package let unsequencedEvents: Int64
    /// Seconds since the first of them was committed.
    package let feedLagSeconds: Double
    /// Every webhook, with whether an operator has to look at it.
    package let webhooks: [(webhook: Webhook, isInTrouble: Bool)]
    /// Workers with a heartbeat in the last two minutes.
    package let workers: Int64
    /// Consecutive rounds of calls, about any app, that brought no answer.
    package let appleFailures: Int64
}

extension LedgerOperations {
    /// Returns the metrics of the whole ledger now.
    package func gauges() async throws -> LedgerGauges {
        async let lanes = query(Queries.gaugeLanes, [.int4(LedgerGauges.dueReceiptsMax)])
        async let apps = query(Queries.gaugeApps)
        async let invariants = invariantStandings()
        async let webhooks = ledger.webhooks.all()
        async let whole = query(Queries.gaugeWhole, [.int4(LedgerGauges.dueReceiptsMax)])
        guard let row = try await whole.first else {
            throw LedgerError(.mismatch, "The ledger says nothing of its feed; run `perennial migrate`.")
        }
        let now = try await ledger.now()
        return LedgerGauges(
            lanes: try await lanes.map(LedgerGauges.LaneGauge.init(row:)),
            apps: try await apps.map(LedgerGauges.AppGauge.init(row:)), invariants: try await invariants,
            feedPosition: try row.int8("position"),
            unsequencedEvents: try row.int8("unsequenced"), feedLagSeconds: try row.float8("lag_seconds"),
            webhooks: try await webhooks.map { ($0, $0.trouble(at: now) != nil) },
            workers: try row.int8("workers"), appleFailures: Int64(try row.int2("apple_failures")))
    }

    /// The present load of the database connections.
    package var databaseLoad: StorageLoad { StorageLoad(database.load) }
}

extension LedgerGauges.LaneGauge {
    init(row: Row) throws {
        bundleID = BundleID(try row.text("bundle_id"))
        lane = try row.word("lane")
        due = try row.int8("receipts")
        lagSeconds = try row.float8("seconds")
    }
}

extension LedgerGauges.AppGauge {
    init(row: Row) throws {
        bundleID = BundleID(try row.text("bundle_id"))
        callsPerSecond = try row.float8("rate")
        tokens = try row.float8("tokens")
        failures = Int64(try row.int2("failures"))
        var paused: Set<StoreEnvironment> = []
        if try row.bool("production_paused") { paused.insert(.production) }
        if try row.bool("sandbox_paused") { paused.insert(.sandbox) }
        self.paused = paused
        hasIncident = try row.bool("has_incident")
        unreadClaims = try row.int8("unread_claims")
    }
}

/// One figure of the business of one app, for metrics.
package struct BusinessGauge: Sendable, Hashable {
    /// What the figure counts.
    package enum Figure: String, Sendable, CaseIterable {
        /// Subscriptions with access at the end of the last whole day.
        case entitled
        /// Subscriptions that paid then.
        case paying
        /// Subscriptions in a trial then.
        case trial
        /// Subscriptions in a grace period now.
        case gracePeriod = "grace_period"
        /// Subscriptions in billing retry now.
        case billingRetry = "billing_retry"
        /// Monthly recurring revenue at the end of the last whole day, in units of a currency.
        case mrr
    }

    package let bundleID: BundleID
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// What it counts.
    package let figure: Figure
    /// The currency of `mrr`; empty for the other figures.
    package let currency: String
    package let value: Double
}

extension LedgerOperations {
    /// Returns the business figures of every app.
    ///
    /// The cost grows with the days that the summaries have and with the subscriptions in grace and billing retry, not
    /// with the number of all subscriptions.
    package func businessGauges() async throws -> [BusinessGauge] {
        try await query(Queries.gaugeBusiness).map { row in
            BusinessGauge(
                bundleID: BundleID(try row.text("bundle_id")), environment: try row.word("environment"),
                figure: try row.word("figure"), currency: try row.text("currency"), value: try row.float8("value"))
        }
    }
}
