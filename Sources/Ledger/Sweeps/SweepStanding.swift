import Postgres
import SQL
package import Subscriptions

/// How far an app's notifications are trusted, for `status`.
package struct SweepStanding: Sendable, Hashable {
    /// The app.
    package let bundleID: BundleID
    /// How many times as far apart refund checks are.
    package let factor: Int
    /// The refunds that count and that a notification reported within a day.
    package let reported: Int64
    /// The refunds that count and that none did.
    package let missed: Int64
    /// The lower bound of the share of refunds that are reported.
    package let lowerBound: Double
    /// When the last verified notification came; nil for never.
    package let lastNotificationAt: Instant?
    /// After which silence the factor is 1.
    package let silenceLongest: Delay
    /// Whether the silence is longer than that.
    package let isSilent: Bool
    /// The database's clock at which this was read.
    package let now: Instant
}

extension LedgerOperations {
    /// Returns how far the notifications of each app with `--sweep auto` are trusted.
    package func sweepStandings() async throws -> [SweepStanding] {
        try await query(Queries.statusSweeps).map { row in
            SweepStanding(
                bundleID: BundleID(try row.text("bundle_id")), factor: Int(try row.int2("factor")),
                reported: try row.int8("reported"), missed: try row.int8("missed"),
                lowerBound: try row.float8("lower_bound"),
                lastNotificationAt: try row.instantIfPresent("last_notification_at"),
                silenceLongest: Delay(milliseconds: try row.int8("silence_longest_ms")),
                isSilent: try row.bool("is_silent"), now: try row.instant("now"))
        }
    }
}
