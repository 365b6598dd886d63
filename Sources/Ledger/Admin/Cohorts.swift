import Postgres
import SQL
package import Subscriptions

/// The subscriptions that began to pay in one month, and those that still paid some months later.
package struct RetentionCohort: Sendable, Hashable {
    /// The share of the cohort at one monthly anniversary.
    package struct Month: Sendable, Hashable {
        /// The anniversary; 0 is the beginning.
        package let month: Int
        /// The subscriptions that reached it.
        package let reached: Int64
        /// Those that paid then.
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
    /// The currency.
    package let currency: String
    /// The subscriptions.
    package let subscriptions: Int64
    /// Those that pay now.
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

    private func read(
        _ file: SQLFile, _ bundleID: BundleID?, _ environment: StoreEnvironment
    ) async throws -> [Row] {
        try await reads.query(
            file, [.text(bundleID?.text), .text(environment.rawValue), .int4(Self.cohortMonths)])
    }
}
