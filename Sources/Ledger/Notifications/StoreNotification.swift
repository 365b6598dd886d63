import Postgres
import SQL
import Subscriptions

extension LedgerIntake {
    /// The minimum interval between a check of a receipt and the next one that notifications request, in seconds.
    static let secondsApart = 60.0
    /// The minimum of these delays with an accelerated App Store, in seconds.
    static let delaySecondsMin = 0.25
    /// The retention of notifications, in days.
    package static let notificationDays: Int32 = 90
    /// How long the ids of verified notifications are remembered, in days: longer than Apple's history.
    static let notificationIDDays: Int32 = 200
    /// The maximum number of notifications removed in one statement.
    static let notificationsPrunedMax: Int32 = 1_000

    /// Stores an unverified notification and brings the next check of what it names forward, in one statement.
    ///
    /// It moves the row of the schedule itself, so that the app's call budget and circuit breaker still apply. The
    /// notification changes nothing else, whatever it claims. The speed-up divides the delays.
    @discardableResult
    package func keep(
        _ notification: UnverifiedNotification, for app: NotifiedApp, unverified reason: String? = nil
    ) async throws -> NotificationEffect {
        let rows = try await write(
            Queries.storeNotification,
            [
                .int4(app.id), .int2(notification.version.rawValue), .text(notification.kind),
                .text(notification.subkind),
                .text(notification.appleID), .text(notification.environment?.rawValue),
                .text(notification.originalTransactionID?.text),
                .text(notification.body), .bool(notification.bundleID.map { $0 != app.bundleID } ?? false),
                .float8(waitSeconds), .float8(apartSeconds), .text(reason),
            ])
        return try rows.first?.word("effect") ?? .repeated
    }

    /// Removes the oldest notifications past their retention, a bounded number at a time; returns how many.
    @discardableResult
    package func pruneNotifications(olderThanDays days: Int32 = notificationDays) async throws -> Int {
        let rows = try await write(
            Queries.pruneNotifications,
            [.int4(days), .int4(Self.notificationsPrunedMax), .int4(Self.notificationIDDays)])
        return Int(try rows.first?.int8("removed") ?? 0)
    }
}
