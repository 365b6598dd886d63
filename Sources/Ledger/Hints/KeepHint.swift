import Postgres
import SQL
import Subscriptions

extension SubscriptionLedger {
    /// How long after a hint Apple is asked, in seconds: its own servers need a moment to agree.
    static let hintSeconds = 5.0
    /// How far apart two checks of one subscription are that hints want, in seconds.
    static let hintSecondsApart = 60.0
    /// The shortest of these delays with an accelerated App Store, in seconds.
    static let hintSecondsMin = 0.25
    /// How long notifications are kept, in days.
    package static let notificationDays: Int32 = 90
    /// Notifications removed in one statement, at most.
    static let notificationsPrunedMax: Int32 = 1_000

    /// Keeps a notification and pulls the next check of what it names forward, in one statement.
    ///
    /// The schedule's own row is moved, so that the app's budget and breaker count as ever. Whatever the notification
    /// claims, nothing else changes. `speedup` divides the delays.
    @discardableResult
    package func keep(_ hint: Hint, for app: NotifiedApp, speedup: Int = 1) async throws -> HintEffect {
        let divisor = Double(max(1, speedup))
        let rows = try await write(
            Queries.keepNotification,
            [
                .int4(app.id), .int2(hint.version.rawValue), .text(hint.kind), .text(hint.subkind),
                .text(hint.appleID), .text(hint.environment?.rawValue), .text(hint.originalTransactionID?.text),
                .text(hint.body), .bool(hint.bundleID.map { $0 != app.bundleID } ?? false),
                .float8(max(Self.hintSecondsMin, Self.hintSeconds / divisor)),
                .float8(max(Self.hintSecondsMin, Self.hintSecondsApart / divisor)),
            ])
        return try rows.first?.word("effect") ?? .repeated
    }

    /// Removes the oldest notifications that were kept long enough, a bounded number at a time; says how many.
    @discardableResult
    package func pruneNotifications(olderThanDays days: Int32 = notificationDays) async throws -> Int {
        let rows = try await write(
            Queries.pruneNotifications, [.int4(days), .int4(Self.notificationsPrunedMax)])
        return Int(try rows.first?.int8("removed") ?? 0)
    }
}
