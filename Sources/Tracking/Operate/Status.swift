import Postgres
import SQL
package import Subscriptions

/// The state of the whole ledger, for `status`.
package struct LedgerStatus: Sendable {
    package struct LaneStatus: Sendable {
        package let bundleID: BundleID
        package let lane: Lane
        package let receipts: Int64
        /// Receipts due and not claimed.
        package let due: Int64
        /// Receipts due for more than a minute.
        package let overdue: Int64
        /// Receipts being asked about.
        package let inFlight: Int64
        package let nextDueAt: Instant?
        /// Seconds since the first due receipt was due, in the lane of imports since it was stored; nil where none is due.
        package let lagSeconds: Double?
        /// The limit of each count: a number that reaches it means that many or more.
        package let countedTo: Int64

        init(row: Row) throws {
            bundleID = try row.id("bundle_id")
            lane = try row.word("lane")
            receipts = try row.int8("receipts")
            due = try row.int8("due")
            overdue = try row.int8("overdue")
            inFlight = try row.int8("in_flight")
            nextDueAt = try row.instantIfPresent("next_due_at")
            lagSeconds = try row.float8IfPresent("lag_seconds")
            countedTo = try row.int8("at_most")
        }
    }

    /// Receipts that were refused because they name another app.
    package struct RefusedBundle: Sendable, Hashable {
        /// The app that they were sent for.
        package let bundleID: BundleID
        /// The app that they name.
        package let named: BundleID
        /// How many; where more ids were named than are kept, at most that many.
        package let receipts: Int64
        package let lastAt: Instant
        /// Whether the app has no other receipt: its bundle id is probably mistyped.
        package let isOnly: Bool
    }

    /// The most bundle ids that are kept of an app, and that a status lists.
    package static let bundlesKept: Int32 = 20
    package static let bundlesMax: Int32 = 100

    /// Subscriptions and purchases of an app that verified notifications named and that no receipt polls.
    package struct UnaskedSubjects: Sendable, Hashable {
        package let bundleID: BundleID
        package let subjects: Int64
        /// Whether the app has a server key, so that a worker takes them up.
        package let hasServerKey: Bool
    }

    /// How many of the newest periods are looked at for hidden terms.
    static let periodsLookedAt: Int32 = 10_000

    /// The most products without a kind that a status lists.
    package static let productsMax: Int32 = 100

    /// The limit of the counts of a lane's receipts; less when there are more than ten apps.
    package static let laneReceiptsCounted: Int64 = 10_000
    /// Above this many receipts the totals are estimates of PostgreSQL's planner.
    package static let totalsCounted: Int64 = 100_000

    package let lanes: [LaneStatus]
    package let receipts: Int64
    package let verified: Int64
    package let unverified: Int64
    /// Receipts whose last answer was a refusal.
    package let rejected: Int64
    /// Whether the counts of receipts and subscriptions are estimates, as they are for a large ledger.
    package let isEstimated: Bool
    /// The receipts with provisional access, by the operator's word alone.
    package let provisional: ProvisionalCount
    package let subscriptions: Int64
    /// Committed events that have no position yet.
    package let unsequencedEvents: Int64
    package let feedPosition: Int64
    package let feedID: String
    /// The feed's previous id, as from before a restore; nil for none.
    package let feedFormerID: String?
    /// When the feed got its id; nil while it has its first id, or while the present one is not stored yet.
    package let feedRenewedAt: Instant?
    /// Whether the feed's cluster is unknown, because `pg_control_system()` may not be called.
    package let isFeedAnywhere: Bool
    /// Workers with a heartbeat in the last two minutes.
    package let workers: Int64
    /// When the newest verified answer came; for a large ledger, the minute within the last quarter of an hour.
    package let lastCheckedAt: Instant?
    /// Apps whose checks are paused, everywhere or in one environment, with the reason.
    package let pauses: [(bundleID: BundleID, pause: App.Pause)]
    /// Apps that only the Server API is asked about, because Apple refuses their shared secret, with the reason.
    package let heldSecrets: [(bundleID: BundleID, pause: App.Pause)]
    /// Apps whose server key Apple refuses while verifyReceipt makes the checks, with the reason.
    package let heldKeys: [(bundleID: BundleID, pause: App.Pause)]
    /// Where Apple accepts only an app's previous shared secret, with which checks go on; since when.
    package let previousSecrets: [(bundleID: BundleID, environment: StoreEnvironment, since: Instant)]
    /// Where Apple refused an app's shared secret about receipts, and no trial has shown whether it accepts it.
    package let doubtfulSecrets: [(bundleID: BundleID, doubt: App.SecretDoubt)]
    /// The apps that refused receipts name, the newest first, at most `bundlesMax`.
    package let refusedBundles: [RefusedBundle]
    /// Apps with a lower rate limit than configured, because Apple asked for fewer calls or was overloaded: the calls a
    /// second at present, and those that the operator allows (0 is any number).
    package let slowed: [(bundleID: BundleID, callsPerSecond: Double, callsPerSecondMax: Double)]
    /// Incidents that run or ended within 24 hours, newest first.
    package let incidents: [Incident]
    /// Products that customers bought once and whose kind the catalog does not say, at most `productsMax`. What it
    /// names grants for good what it says, and else nothing.
    package let productsWithoutKind: [(bundleID: BundleID, id: ProductID, isNamed: Bool)]
    /// Apps whose terms of payments verifyReceipt hides: they do not ask the Server API, and so many of the newest
    /// periods look like payments of a yearly term.
    package let hiddenTerms: [(bundleID: BundleID, periods: Int64)]
    /// Claims that Apple states and this version does not read.
    package let unreadClaims: [CountedClaim]
    /// Apps whose deliveries of production wait for more than an hour for the operator's service.
    package let lateDeliveries: [DueDeliveries]
    /// What Apple is not asked about: what is known by notification only, and what only transactions show, without a key.
    package let unasked: [UnaskedSubjects]
    /// Transactions whose consumption Apple asked about without an answer, at most `LateConsumption.listedMax`.
    package let lateConsumption: [LateConsumption]
    /// The workers' last result for each invariant.
    package let invariants: [InvariantStanding]
    /// The webhooks that an operator has to look at, each with what is wrong.
    package let webhookTroubles: [(id: Int32, trouble: String)]
    package let today: [TodaySoFar]
    /// Whether the summaries, which `today` rests on, have covered every subscription.
    package let isSummarised: Bool
}

extension LedgerOperations {
    /// Returns the state of the whole ledger now.
    package func status() async throws -> LedgerStatus {
        let lanes = try await query(Queries.status, .int8(LedgerStatus.laneReceiptsCounted))
            .map(LedgerStatus.LaneStatus.init(row:))
        let provisional = try await query(
            Queries.statusProvisional, .int4(Int32(clamping: ProvisionalCount.countedMax))
        ).first
        let apps = try await ledger.apps.all()
        let pauses = apps.flatMap { app in app.pauses.map { (app.bundleID, $0) } }
        let heldSecrets = apps.flatMap { app in app.heldSecrets.map { (app.bundleID, $0) } }
        let slowed = apps.filter { $0.callsPerSecondNow != $0.callsPerSecond }
        let incidents = try await query(Queries.statusIncidents).map(Incident.init(row:))
        guard let row = try await query(Queries.statusTotals, .int8(LedgerStatus.totalsCounted)).first else {
            throw LedgerError(.mismatch, "The ledger gave no totals; run `perennial migrate`.")
        }
        return LedgerStatus(
            lanes: lanes, receipts: try row.int8("receipts"), verified: try row.int8("verified"),
            unverified: try row.int8("unverified"), rejected: try row.int8("rejected"),
            isEstimated: try row.bool("estimated"),
            provisional: ProvisionalCount(
                receipts: try provisional?.int8("receipts") ?? 0, until: try provisional?.instantIfPresent("until")),
            subscriptions: try row.int8("subscriptions"), unsequencedEvents: try row.int8("unsequenced"),
            feedPosition: try row.int8("position"), feedID: try row.text("feed_id"),
            feedFormerID: try row.textIfPresent("former_id"), feedRenewedAt: try row.instantIfPresent("renewed_at"),
            isFeedAnywhere: try row.bool("is_anywhere"), workers: try row.int8("workers"),
            lastCheckedAt: try row.instantIfPresent("last_checked_at"), pauses: pauses, heldSecrets: heldSecrets,
            heldKeys: apps.flatMap { app in app.heldKeys.map { (app.bundleID, $0) } },
            previousSecrets: apps.flatMap { app in
                StoreEnvironment.allCases.compactMap { environment in
                    app.previousSecrets[environment].map { (app.bundleID, environment, $0) }
                }
            },
            doubtfulSecrets: apps.flatMap { app in app.secretDoubts.map { (app.bundleID, $0) } },
            refusedBundles: try await query(Queries.statusRefusedBundles, .int4(LedgerStatus.bundlesMax)).map { row in
                LedgerStatus.RefusedBundle(
                    bundleID: try row.id("bundle_id"), named: try row.id("named"), receipts: try row.int8("receipts"),
                    lastAt: try row.instant("last_at"), isOnly: try row.bool("is_only"))
            },
            slowed: slowed.map { ($0.bundleID, $0.callsPerSecondNow, $0.callsPerSecond) }, incidents: incidents,
            productsWithoutKind: try await query(Queries.statusProducts, .int4(LedgerStatus.productsMax)).map { row in
                (try row.id("bundle_id"), try row.id("product_id"), try row.bool("is_named"))
            },
            hiddenTerms: try await query(Queries.statusHiddenTerms, .int4(LedgerStatus.periodsLookedAt)).map { row in
                (try row.id("bundle_id"), try row.int8("periods"))
            },
            unreadClaims: try await ledger.intake.unreadClaims(),
            lateDeliveries: try await ledger.deliveries.due(forMoreThan: LedgerDeliveries.lateSeconds),
            unasked: try await query(Queries.statusUnasked).map { row in
                LedgerStatus.UnaskedSubjects(
                    bundleID: try row.id("bundle_id"), subjects: try row.int8("subjects"),
                    hasServerKey: try row.bool("has_key"))
            },
            lateConsumption: try await lateConsumption(), invariants: try await invariantStandings(),
            webhookTroubles: try await ledger.webhooks.troubles(), today: try await ledger.admin.today(),
            isSummarised: try row.bool("is_summarised"))
    }
}

/// How many receipts give provisional access, by the operator's word alone, and until when.
package struct ProvisionalCount: Sendable, Hashable {
    /// The most receipts that are counted, so that the count stays cheap while millions wait.
    package static let countedMax: Int64 = 100_000

    /// Receipts that wait for Apple's first answer and give provisional access now; at most `countedMax`.
    package let receipts: Int64
    /// When the last such access ends at the latest; nil when there is none.
    package let until: Instant?

    /// Whether there may be more receipts than `receipts`.
    package var isMore: Bool { receipts >= Self.countedMax }
}
