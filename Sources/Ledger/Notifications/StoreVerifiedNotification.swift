import Postgres
import SQL
import Subscriptions

extension LedgerIntake {
    /// Stores a verified notification once; a worker applies it. Returns whether it was new.
    @discardableResult
    package func keep(
        _ notification: VerifiedNotification, for app: NotifiedApp, from source: NotificationSource = .push
    ) async throws -> NotificationEffect {
        let rows = try await write(
            Queries.storeVerifiedNotification,
            [
                .int4(app.id), .text(notification.kind), .text(notification.subkind), .text(notification.appleID),
                .text(notification.environment?.rawValue), .text(notification.originalTransactionID?.text),
                .instant(notification.signedAt), .bytea(notification.texts), .bool(notification.holdsFacts),
                .text(notification.transactionID?.text),
                .text(source.rawValue), .text(notification.accountToken?.lowercased()),
            ])
        return try rows.first?.word("effect") ?? .repeated
    }

    /// Stores a notification that pulls no check, such as one with a wrong password.
    package func keep(
        _ notification: UnverifiedNotification, for app: NotifiedApp, because effect: NotificationEffect
    ) async throws {
        _ = try await write(
            Queries.storeUnaskedNotification,
            [
                .int4(app.id), .int2(notification.version.rawValue), .text(notification.kind),
                .text(notification.subkind), .text(notification.environment?.rawValue),
                .text(notification.originalTransactionID?.text), .text(effect.rawValue), .text(notification.body),
            ])
    }
}
