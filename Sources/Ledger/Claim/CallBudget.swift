import Postgres
import SQL
package import Subscriptions

/// A kind of call of the Server API. Apple limits each kind on its own: "Identifying rate limits".
package enum CallKind: String, Sendable, CaseIterable {
    /// The statuses of a customer's subscriptions.
    case statuses
    /// The history of a customer's transactions.
    case history
    /// One transaction, or a report of consumption.
    case transactions
    /// Refund history and orders.
    case refunds
    /// Extending one subscription, account tokens.
    case extensions
    /// Extending all subscriptions, test notifications.
    case single

    /// The part of an app's rate that this kind may have. Apple's figures are 50 for the first three, then 10, 20 and 1
    /// a second.
    var part: Double {
        switch self {
        case .statuses, .history, .transactions: 1
        case .refunds: 0.2
        case .extensions: 0.4
        case .single: 0.02
        }
    }
}

extension LedgerClaims {
    /// The part of the rate that Apple's sandbox allows.
    static let sandboxPart = 0.1
    /// The longest pause that Apple may ask for, in seconds.
    package static let callPauseSecondsMax = 3_600.0

    /// Takes one call of the Server API from an app's budget. Returns nil when it may be made, else the seconds after
    /// which to ask again.
    package func takeCall(_ kind: CallKind, of app: App, in environment: StoreEnvironment) async throws -> Double? {
        let full = app.callsPerSecond == 0 ? CallRateLimit.callsPerSecondUnlimited : app.callsPerSecond
        let rate = full * kind.part * (environment == .sandbox ? Self.sandboxPart : 1)
        let rows = try await write(
            Queries.takeCall,
            [
                .int4(app.id), .text(environment.rawValue), .text(kind.rawValue), .float8(rate), .float8(max(1, rate)),
            ])
        guard let row = rows.first, try row.bool("granted") == false else { return nil }
        return try row.float8IfPresent("wait_seconds") ?? 1 / rate
    }

    /// Stops a kind of call about an app for some seconds, because Apple asks for it; at most an hour.
    package func pauseCalls(
        _ kind: CallKind, of app: App, in environment: StoreEnvironment, seconds: Double
    ) async throws {
        _ = try await write(
            Queries.pauseCalls,
            [
                .int4(app.id), .text(environment.rawValue), .text(kind.rawValue),
                .float8(min(max(seconds, 1), Self.callPauseSecondsMax)),
            ])
    }
}
