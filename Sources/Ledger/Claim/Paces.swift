import Postgres
import SQL
import Subscriptions

/// Whose pace is meant.
package enum PaceOwner: Sendable, Hashable {
    /// One app's.
    case app(Int32)
    /// Apple as a whole: while it answers nobody, all apps wait. It has no rate of its own.
    case everyone
}

/// A pause that follows from a round of answers.
package struct PaceChange: Sendable {
    /// The pace from now on.
    package var pace: CallPace
    /// How long nothing is asked, in seconds; 0 to go on.
    package var pauseSeconds: Double
    /// One sentence for the pause.
    package var reason: String

    /// A change.
    package init(pace: CallPace, pauseSeconds: Double, reason: String) {
        self.pace = pace
        self.pauseSeconds = pauseSeconds
        self.reason = reason
    }
}

extension SubscriptionLedger {
    /// Changes a pace under its lock: `decide` gets the stored one and the database's clock.
    package func changePace(
        of owner: PaceOwner, _ decide: @escaping @Sendable (CallPace, Instant) -> PaceChange
    ) async throws {
        try await database.transaction { transaction in
            switch owner {
            case .app(let id):
                guard let row = try transaction.query(Queries.lockPace, [.int4(id)]).first else { return }
                let change = decide(try CallPace(row: row), try row.instant("at"))
                try transaction.query(
                    Queries.writePace,
                    [
                        .int4(id), .float8(change.pace.slowed?.callsPerSecond), .instant(change.pace.slowed?.at),
                        .int2(Int16(clamping: change.pace.failures)), .float8(change.pauseSeconds),
                        .text(change.reason),
                    ])
            case .everyone:
                guard let row = try transaction.query(Queries.lockAppleBreaker).first else { return }
                let pace = CallPace(
                    callsPerSecondMax: 0, failures: Int(try row.int2("failures")),
                    closedUntil: try row.instant("open_until"))
                let change = decide(pace, try row.instant("at"))
                try transaction.query(
                    Queries.writeAppleBreaker,
                    [
                        .int2(Int16(clamping: change.pace.failures)), .float8(change.pauseSeconds),
                        .text(change.reason),
                    ])
            }
        }
    }
}

extension CallPace {
    init(row: Row) throws {
        let slowedTo = try row.float8IfPresent("slowed_to")
        let slowedAt = try row.instantIfPresent("slowed_at")
        self.init(
            callsPerSecondMax: try row.float8("rate"),
            slowed: slowedTo.flatMap { rate in slowedAt.map { Slowed(to: rate, at: $0) } },
            failures: Int(try row.int2("failures")), closedUntil: try row.instant("open_until"))
    }
}
