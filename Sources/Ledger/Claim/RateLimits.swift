import Postgres
import SQL
package import Subscriptions

/// The owner of a rate limit.
package enum RateLimitOwner: Sendable, Hashable {
    /// One app.
    case app(Int32)
    /// Apple as a whole: while it answers no app, all apps wait. It has no rate limit of its own.
    case everyone
}

/// A change of a rate limit, with a pause, after a round of answers.
package struct RateLimitChange: Sendable {
    /// The new rate limit.
    package var rateLimit: CallRateLimit
    /// The length of the pause, in seconds; 0 for none.
    package var pauseSeconds: Double
    /// The reason for the pause, in one sentence.
    package var reason: String

    /// Creates a change.
    package init(rateLimit: CallRateLimit, pauseSeconds: Double, reason: String) {
        self.rateLimit = rateLimit
        self.pauseSeconds = pauseSeconds
        self.reason = reason
    }
}

extension LedgerApps {
    /// Changes a rate limit under its lock; `decide` receives the stored one and the database's clock.
    package func changeRateLimit(
        of owner: RateLimitOwner, _ decide: @escaping @Sendable (CallRateLimit, Instant) -> RateLimitChange
    ) async throws {
        try await database.transaction { transaction in
            switch owner {
            case .app(let id):
                guard let row = try transaction.query(Queries.lockRateLimit, [.int4(id)]).first else { return }
                let change = decide(try CallRateLimit(row: row), try row.instant("at"))
                try transaction.query(
                    Queries.writeRateLimit,
                    [
                        .int4(id), .float8(change.rateLimit.slowed?.callsPerSecond),
                        .instant(change.rateLimit.slowed?.at),
                        .int2(Int16(clamping: change.rateLimit.failures)), .float8(change.pauseSeconds),
                        .text(change.reason),
                    ])
            case .everyone:
                guard let row = try transaction.query(Queries.lockAppleBreaker).first else { return }
                let rateLimit = CallRateLimit(
                    callsPerSecondMax: 0, failures: Int(try row.int2("failures")),
                    pausedUntil: try row.instant("paused_until"))
                let change = decide(rateLimit, try row.instant("at"))
                try transaction.query(
                    Queries.writeAppleBreaker,
                    [
                        .int2(Int16(clamping: change.rateLimit.failures)), .float8(change.pauseSeconds),
                        .text(change.reason),
                    ])
            }
        }
    }
}

extension CallRateLimit {
    init(row: Row) throws {
        let slowedTo = try row.float8IfPresent("slowed_to")
        let slowedAt = try row.instantIfPresent("slowed_at")
        self.init(
            callsPerSecondMax: try row.float8("rate"),
            slowed: slowedTo.flatMap { rate in slowedAt.map { Slowed(to: rate, at: $0) } },
            failures: Int(try row.int2("failures")), pausedUntil: try row.instant("app_paused_until"))
    }
}
