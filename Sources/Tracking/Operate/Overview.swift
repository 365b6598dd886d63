import Postgres
import SQL
package import Subscriptions

/// The figures of the overview: whole UTC days and today so far, checks by the hour, and delays.
package struct Overview: Sendable {
    /// One day. Levels are those at the end of the day, those of today so far at the present instant.
    package struct Day: Sendable, Hashable {
        /// The date, such as `2026-01-31`.
        package let day: String
        /// Subscriptions with access, the subset in a trial, and paying subscriptions.
        package let active, trial, paying: Int64
        /// Subscriptions that began to pay, came back, and stopped.
        package let began, returned, churned: Int64
        /// Trials that began, that led to a charge, and that ended without one.
        package let trialsStarted, trialsConverted, trialsLost: Int64

        init(row: Row) throws {
            day = try row.text("day")
            (active, trial, paying) = (try row.int8("active"), try row.int8("trial"), try row.int8("paying"))
            (began, returned, churned) = (try row.int8("began"), try row.int8("returned"), try row.int8("churned"))
            trialsStarted = try row.int8("trials_started")
            trialsConverted = try row.int8("trials_converted")
            trialsLost = try row.int8("trials_lost")
        }
    }

    /// The monthly recurring revenue at the end of one day, or now for today.
    package struct Amount: Sendable, Hashable {
        /// The date, such as `2026-01-31`.
        package let day: String
        /// In thousandths of the currency's unit.
        package let milliunits: Int64
    }

    /// The monthly recurring revenue in one currency.
    package struct Revenue: Sendable, Hashable {
        package let currency: String
        /// The amounts, oldest day first.
        package var days: [Amount]
    }

    /// Apple's answers within one hour.
    package struct Hour: Sendable, Hashable {
        /// The hour in UTC, such as `2026-01-31 12:00`.
        package let hour: String
        /// Verified answers, rejected answers, and calls without an answer.
        package let verified, rejected, failed: Int64

        init(row: Row) throws {
            hour = try row.text("hour")
            (verified, rejected, failed) = (try row.int8("verified"), try row.int8("rejected"), try row.int8("failed"))
        }
    }

    /// Whole days, oldest first, then today so far.
    package let days: [Day]
    /// The revenue in the currencies with the largest amounts.
    package let revenue: [Revenue]
    /// The hours of the last two days, oldest first.
    package let hours: [Hour]
    package let staleness: Staleness

    /// The delays of checks and summaries, and the number of workers and problems.
    package struct Staleness: Sendable, Hashable {
        /// The limit up to which overdue receipts are counted.
        package static let overdueMax: Int32 = 10_000
        /// Receipts that are overdue by more than five minutes.
        package let overdue: Int64
        /// The due time of the oldest of them.
        package let oldestDueAt: Instant?
        package let workers: Int64
        package let incidents: Int64
        /// Violations of invariants that workers found most recently and could not repair.
        package let violations: Int64
        /// Subscriptions and purchases of apps without a server key that Apple is not asked about for want of it.
        package let unasked: Int64
        /// Whether the summaries have covered every subscription at least once.
        package let isComplete: Bool
        package let summarisedAt: Instant?
        package let eventsBehind: Int64
    }
}

/// Today so far, in production.
package struct TodaySoFar: Sendable, Hashable {
    /// The app; nil for all of them together.
    package let bundleID: BundleID?
    /// Levels of now, and what happened today.
    package let figures: Overview.Day
    /// The monthly recurring revenue of now in the currencies with the largest amounts.
    package let revenue: [Overview.Revenue]
}

extension LedgerAdmin {
    /// Returns the overview of an app, or of all if nil, in one environment, for the last `days` whole days and today.
    package func overview(
        app bundleID: BundleID?, environment: StoreEnvironment = .production, days: Int
    ) async throws -> Overview {
        let app = Parameter.text(bundleID?.text)
        let daily = try await reads.query(
            Queries.overviewDays, [app, .text(environment.rawValue), .int4(Int32(clamping: days))], mayTakeLong: true)
        let hours = try await reads.query(Queries.overviewChecks, [app], mayTakeLong: true)
        let late = try await reads.query(
            Queries.overviewStaleness, [app, .int4(Overview.Staleness.overdueMax)], mayTakeLong: true)
        guard let row = late.first else {
            throw LedgerError(.mismatch, "The ledger has no summaries; run `perennial migrate`.")
        }
        return Overview(
            days: try daily.filter { try $0.isNull("currency") }.map(Overview.Day.init(row:)),
            revenue: try Overview.Revenue.all(in: daily), hours: try hours.map(Overview.Hour.init(row:)),
            staleness: try Overview.Staleness(row: row))
    }

    /// Above this many apps the present day is that of all apps together.
    private static let todayAppsMax = 20

    /// Returns today so far of each app; of very many apps the sum.
    package func today() async throws -> [TodaySoFar] {
        let apps = try await ledger.apps.all().map(\.bundleID)
        var all: [TodaySoFar] = []
        for bundleID in apps.count > Self.todayAppsMax ? [nil] : apps.map(Optional.some) {
            let rows = try await reads.query(
                Queries.overviewDays, [.text(bundleID?.text), .text(StoreEnvironment.production.rawValue), .int4(0)],
                mayTakeLong: true)
            guard let day = try rows.first(where: { try $0.isNull("currency") }) else { continue }
            all.append(
                TodaySoFar(
                    bundleID: bundleID, figures: try Overview.Day(row: day), revenue: try Overview.Revenue.all(in: rows)
                ))
        }
        return all
    }
}

extension Overview.Revenue {
    /// Collects the revenue of each currency; the rows are ordered by currency and day.
    static func all(in rows: [Row]) throws -> [Overview.Revenue] {
        var all: [Overview.Revenue] = []
        for row in rows {
            guard let currency = try row.textIfPresent("currency") else { continue }
            if all.last?.currency != currency { all.append(Overview.Revenue(currency: currency, days: [])) }
            all[all.count - 1].days.append(
                Overview.Amount(day: try row.text("day"), milliunits: try row.int8("monthly")))
        }
        return all
    }
}

extension Overview.Staleness {
    init(row: Row) throws {
        (overdue, oldestDueAt) = (try row.int8("overdue"), try row.instantIfPresent("oldest_due_at"))
        (workers, incidents) = (try row.int8("workers"), try row.int8("incidents"))
        (violations, unasked) = (try row.int8("violations"), try row.int8("unasked"))
        (isComplete, summarisedAt) = (try row.bool("is_complete"), try row.instantIfPresent("summarised_at"))
        eventsBehind = try row.int8("events_behind")
    }
}

/// The subscriptions that began to pay in one month, and those that still paid some months later.
package struct RetentionCohort: Sendable, Hashable {
    /// The share of the cohort at one monthly anniversary.
    package struct Month: Sendable, Hashable {
        /// The anniversary; 0 is the beginning.
        package let month: Int
        package let reached: Int64
        package let retained: Int64
    }

    /// The first day of the month, such as `2026-01-01`.
    package let since: String
    /// The anniversaries that some reached, in order, from the beginning on.
    package var months: [Month]
}

/// The subscriptions that were first charged in one month, with their revenue so far in one currency.
package struct RevenueCohort: Sendable, Hashable {
    /// The first day of the month, such as `2026-01-01`.
    package let since: String
    package let currency: String
    package let subscriptions: Int64
    package let paying: Int64
    /// The revenue less refunds, in thousandths of the currency's unit.
    package let milliunits: Int64
}

extension LedgerAdmin {
    /// The months that the pages of cohorts go back.
    package static let cohortMonths: Int32 = 12

    /// Returns the retention of the last months' cohorts of an app, or of all apps if nil, oldest first.
    package func retention(app bundleID: BundleID?, environment: StoreEnvironment) async throws -> [RetentionCohort] {
        var cohorts: [RetentionCohort] = []
        for row in try await read(Queries.readRetention, bundleID, environment) {
            let since = try row.text("since")
            if cohorts.last?.since != since { cohorts.append(RetentionCohort(since: since, months: [])) }
            cohorts[cohorts.count - 1].months.append(
                RetentionCohort.Month(
                    month: Int(try row.int4("month")), reached: try row.int8("reached"),
                    retained: try row.int8("retained")))
        }
        return cohorts
    }

    /// Returns the revenue of the last months' cohorts of an app, or of all apps if nil, newest first.
    package func cohorts(app bundleID: BundleID?, environment: StoreEnvironment) async throws -> [RevenueCohort] {
        try await read(Queries.readCohorts, bundleID, environment).map { row in
            RevenueCohort(
                since: try row.text("since"), currency: try row.text("currency"),
                subscriptions: try row.int8("subscriptions"), paying: try row.int8("paying"),
                milliunits: try row.int8("amount"))
        }
    }

    private func read(_ file: SQLFile, _ bundleID: BundleID?, _ environment: StoreEnvironment) async throws -> [Row] {
        try await reads.query(
            file, [.text(bundleID?.text), .text(environment.rawValue), .int4(Self.cohortMonths)], mayTakeLong: true)
    }
}
