import Postgres
import SQL
package import Subscriptions

/// The deliveries of an app that wait for an acknowledgement.
package struct DueDeliveries: Sendable, Hashable {
    /// The most deliveries of an app that are counted.
    package static let countedMax: Int32 = 10_000

    /// The app.
    package let bundleID: BundleID
    /// Deliveries that are due; at most `countedMax`.
    package let deliveries: Int64
    /// When the oldest of them became due.
    package let oldestAt: Instant
    /// Seconds for which the oldest of them has been due.
    package let seconds: Double

    /// Whether there may be more than `deliveries`.
    package var isMore: Bool { deliveries >= Int64(Self.countedMax) }
}

extension LedgerDeliveries {
    /// After how many seconds a due delivery is late: the operator's service does not carry it out.
    package static let lateSeconds = 3_600.0

    /// Returns, of each app or of one, what has been due for more than `seconds`. An app with nothing due is left out.
    package func due(
        of bundleID: BundleID? = nil, in environment: StoreEnvironment = .production, forMoreThan seconds: Double = 0
    ) async throws -> [DueDeliveries] {
        try await query(
            Queries.countDueDeliveries,
            [
                .text(bundleID?.text), .text(environment.rawValue), .float8(seconds), .int4(DueDeliveries.countedMax),
            ]
        ).map { row in
            DueDeliveries(
                bundleID: BundleID(try row.text("bundle_id")), deliveries: try row.int8("deliveries"),
                oldestAt: try row.instant("oldest_at"), seconds: try row.float8("seconds"))
        }
    }
}
