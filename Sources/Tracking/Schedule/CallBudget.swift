import Postgres
import SQL
package import Subscriptions

/// A kind of call of the Server API. Apple limits each kind on its own: "Identifying rate limits".
package enum CallKind: String, Sendable, CaseIterable {
    case statuses
    case history
    /// One transaction, or a report of consumption.
    case transactions
    /// Refund history and orders.
    case refunds
    /// Extending one subscription, account tokens.
    case extensions
    /// Extending all subscriptions, test notifications.
    case single

    /// The part of an app's rate that this kind may have. Apple's figures are 50 (first three), 10, 20 and 1 a second.
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
    /// Reserves calls to Apple; returns how many of the `wanted` calls each app may make now.
    package func takeBudget(_ wanted: [(app: App, calls: Int)]) async throws -> [Int32: Int] {
        let rows = try await write(
            Queries.takeBudget, .int4s(wanted.map(\.app.id)), .int4s(wanted.map { Int32(clamping: $0.calls) }))
        return try Dictionary(uniqueKeysWithValues: rows.map { (try $0.int4("app_id"), Int(try $0.int4("granted"))) })
    }

    /// Returns reserved calls that were not made.
    package func returnBudget(_ unused: [Int32: Int]) async throws {
        let unused = unused.filter { $0.value > 0 }
        guard !unused.isEmpty else { return }
        _ = try await write(
            Queries.returnBudget, .int4s(unused.map(\.key)), .int4s(unused.map { Int32(clamping: $0.value) }))
    }

    /// The part of the rate that Apple's sandbox allows.
    static let sandboxPart = 0.1
    /// The longest pause that Apple may ask for, in seconds.
    package static let callPauseSecondsMax = 3_600.0

    /// Takes one call of the Server API from an app's budget. Returns nil when it may be made, else seconds to wait.
    package func takeCall(_ kind: CallKind, of app: App, in environment: StoreEnvironment) async throws -> Double? {
        let full = app.callsPerSecond == 0 ? CallRateLimit.callsPerSecondUnlimited : app.callsPerSecond
        let rate = full * kind.part * (environment == .sandbox ? Self.sandboxPart : 1)
        let rows = try await write(
            Queries.takeCall, .int4(app.id), .text(environment.rawValue), .text(kind.rawValue), .float8(rate),
            .float8(max(1, rate)))
        guard let row = rows.first, try row.bool("granted") == false else { return nil }
        return try row.float8IfPresent("wait_seconds") ?? 1 / rate
    }

    /// Stops a kind of call about an app for some seconds, because Apple asks for it; at most an hour.
    package func pauseCalls(
        _ kind: CallKind, of app: App, in environment: StoreEnvironment, seconds: Double
    ) async throws {
        _ = try await write(
            Queries.pauseCalls, .int4(app.id), .text(environment.rawValue), .text(kind.rawValue),
            .float8(min(max(seconds, 1), Self.callPauseSecondsMax)))
    }
}

extension Tracker {
    /// Takes one call from the app's budget; returns the seconds to wait where it is used up or the database is away.
    func takeCall(_ kind: CallKind, of app: App, in environment: StoreEnvironment) async -> Double? {
        let wait = await attempt("take a call from the budget") {
            try await ledger.claims.takeCall(kind, of: app, in: environment) ?? 0
        }
        guard let wait else { return 1 }
        return wait > 0 ? wait : nil
    }
}

/// The rate limit of an app's calls to Apple: shared by all workers, stored with the app's budget.
package struct CallRateLimit: Sendable, Hashable {
    /// The lowest rate limit: one call every two seconds.
    package static let callsPerSecondMin = 0.5
    /// The rate at which an app without a rate limit of its own is no longer slowed down, in calls a second.
    package static let callsPerSecondUnlimited = 1_000.0
    /// The time to grow from zero to the full rate, in seconds.
    package static let growthSeconds = 60.0

    /// The operator's rate limit in calls a second; 0 is unlimited.
    package var callsPerSecondMax: Double
    /// The reduced rate since Apple last asked for fewer calls, and its time; nil if Apple never did.
    package var slowed: Slowed?
    /// The number of consecutive rounds in which most answers failed; above 0 only a few receipts are tried.
    package var failures = 0
    /// The instant before which no call is made.
    package var pausedUntil = Instant(milliseconds: .min)

    package struct Slowed: Sendable, Hashable {
        package var callsPerSecond: Double
        /// The time of the reduction, by the database's clock.
        package var at: Instant

        /// Creates a rate reduced to `callsPerSecond` at an instant, but not below the lowest rate limit.
        package init(to callsPerSecond: Double, at instant: Instant) {
            self.callsPerSecond = max(CallRateLimit.callsPerSecondMin, callsPerSecond)
            at = instant
        }
    }

    /// Returns the rate limit at an instant, in calls a second; 0 is unlimited.
    /// A reduced rate grows each second by a sixtieth of the full rate, at least by 0.05. SQL: `ledger.calls_a_second`.
    package func callsPerSecond(at now: Instant) -> Double {
        guard let slowed else { return callsPerSecondMax }
        let passed = max(0, Double((now - slowed.at).milliseconds) / 1000)
        let grown = slowed.callsPerSecond + max(callsPerSecondFull / Self.growthSeconds, 0.05) * passed
        return grown < callsPerSecondFull ? grown : callsPerSecondMax
    }

    /// The full rate as a finite number, for calculations.
    package var callsPerSecondFull: Double {
        callsPerSecondMax == 0 ? Self.callsPerSecondUnlimited : callsPerSecondMax
    }
}

extension CallRateLimit {
    /// Rounds that may fail before the first pause.
    static let failuresTolerated = 2
    /// The count of failed rounds stops here.
    static let failuresMax = 100
    /// The longest pause between two tries, in seconds.
    static let pauseSecondsMax = 60.0
    /// The longest wait requested by Apple that is respected, in seconds; a longer one is cut to this.
    static let retryAfterSecondsMax = 900.0
    /// The shortest time between two slow-downs, in seconds: answers to earlier calls are still coming in.
    static let slowingSecondsMin = 1.0

    /// Returns the rate limit after a round of answers: additive growth, multiplicative cuts, one breaker.
    ///
    /// Growth follows the clock (`callsPerSecond(at:)`), but stops while Apple asks for a wait. Too many HTTP 429 halve
    /// the calls; other signs of overload cut them by half of their share of the answers. A pause grows with each round
    /// that fails; after it the calls begin at the slowest rate. Only requests after the last cut or pause count.
    func after(_ round: OutcomeWindow, now: Instant) -> (rateLimit: CallRateLimit, pauseSeconds: Double) {
        var next = self
        next.slowed = slowed(after: round, now: now)
        var pause = 0.0
        if round.failed * 2 <= round.asked {
            next.failures = 0
        } else if isNews(round, since: pausedUntil) {
            next.failures = min(failures + 1, Self.failuresMax)
            pause = Self.pauseSeconds(after: next.failures)
        }
        if pause > 0 { next.slowed = Slowed(to: Self.callsPerSecondMin, at: now + .milliseconds(of: pause)) }
        if let asked = round.retryAfterSeconds {
            pause = max(pause, min(asked, Self.retryAfterSecondsMax))
            if pause > 0 { next.slowed = next.kept(until: now + .milliseconds(of: pause), now: now) }
        }
        return (next, pause)
    }

    /// Restarts the growth of a slowed rate at the end of a pause, which does not show how much Apple can take.
    private func kept(until end: Instant, now: Instant) -> Slowed? {
        guard let slowed, callsPerSecond(at: now) != callsPerSecondMax, slowed.at < end else { return slowed }
        return Slowed(to: callsPerSecond(at: now), at: end)
    }

    /// Returns the seconds to wait after `failures` failed rounds in a row; 0 while Apple answers.
    static func pauseSeconds(after failures: Int) -> Double {
        let beyond = failures - failuresTolerated
        guard beyond > 0 else { return 0 }
        return min(pauseSecondsMax, Double(1 << min(beyond, 10)))
    }

    private func slowed(after round: OutcomeWindow, now: Instant) -> Slowed? {
        guard round.overloaded > 0, round.asked > 0, isNews(round, since: slowed?.at) else { return slowed }
        if let slowed, now - slowed.at < .milliseconds(of: Self.slowingSecondsMin) { return slowed }
        let part = Double(round.overloaded) / Double(round.asked)
        let kept = round.tooMany * OutcomeWindow.tooManyPart >= round.asked ? 0.5 : 1 - part / 2
        let present = callsPerSecond(at: now)
        return Slowed(to: (present == 0 ? callsPerSecondFull : present) * kept, at: now)
    }

    private func isNews(_ round: OutcomeWindow, since instant: Instant?) -> Bool {
        guard let instant, let newest = round.newestFailureAt else { return true }
        return newest >= instant
    }

    init(row: Row) throws {
        let slowedTo = try row.float8IfPresent("slowed_to")
        let slowedAt = try row.instantIfPresent("slowed_at")
        self.init(
            callsPerSecondMax: try row.float8("rate"),
            slowed: slowedTo.flatMap { rate in slowedAt.map { Slowed(to: rate, at: $0) } },
            failures: Int(try row.int2("failures")), pausedUntil: try row.instant("app_paused_until"))
    }
}

extension Delay {
    fileprivate static func milliseconds(of seconds: Double) -> Delay { Delay(milliseconds: Int64(seconds * 1000)) }
}

/// The owner of a rate limit.
package enum RateLimitOwner: Sendable, Hashable {
    case app(Int32)
    /// Apple as a whole: while it answers no app, all apps wait. It has no rate limit of its own.
    case everyone
}

/// A change of a rate limit, with a pause, after a round of answers.
package struct RateLimitChange: Sendable {
    package var rateLimit: CallRateLimit
    /// The length of the pause, in seconds; 0 for none.
    package var pauseSeconds: Double
    package var reason: String

    fileprivate var pause: [Parameter] {
        [.int2(Int16(clamping: rateLimit.failures)), .float8(pauseSeconds), .text(reason)]
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
                guard let row = try transaction.query(Queries.lockRateLimit, .int4(id)).first else { return }
                let change = decide(try CallRateLimit(row: row), try row.instant("at"))
                let slowed = change.rateLimit.slowed
                try transaction.query(
                    Queries.writeRateLimit,
                    [.int4(id), .float8(slowed?.callsPerSecond), .instant(slowed?.at)] + change.pause)
            case .everyone:
                guard let row = try transaction.query(Queries.lockAppleBreaker).first else { return }
                let rateLimit = CallRateLimit(
                    callsPerSecondMax: 0, failures: Int(try row.int2("failures")),
                    pausedUntil: try row.instant("paused_until"))
                let change = decide(rateLimit, try row.instant("at"))
                try transaction.query(Queries.writeAppleBreaker, change.pause)
            }
        }
    }
}
