import Postgres
import SQL
package import Subscriptions

/// A stretch of Apple's history of an app's notifications, which a worker reads page by page.
package struct CatchUp: Sendable {
    /// Which notifications are read again.
    package enum Kind: String, Sendable {
        /// All of them, hourly.
        case everything
        /// Those that Apple failed to deliver, daily: Apple tries for a week.
        case failures

        /// The time between the ends of two rounds, in seconds.
        var everySeconds: Double {
            switch self {
            case .everything: 3_600
            case .failures: 86_400
            }
        }

        /// How much earlier than the last round ended the next one begins, in seconds: what happens appears in the
        /// history a little later, and a failure may appear after the last attempt.
        var overlapSeconds: Double {
            switch self {
            case .everything: 3_600
            case .failures: 604_800
            }
        }
    }

    /// The app, with the database's clock.
    package let app: NotifiedApp
    /// Where the history is read.
    package let environment: StoreEnvironment
    /// Which notifications are read.
    package let kind: Kind
    /// Where the stretch begins.
    package let from: Instant
    /// Where the stretch ends.
    package let until: Instant
    /// Apple's token of the next page; nil: the first one.
    package var page: String?
    let worker: WorkerID
}

/// A history of notifications that is not read as it should be.
package struct CatchUpStanding: Sendable, Hashable {
    /// The app.
    package let bundleID: BundleID
    /// The environment.
    package let environment: StoreEnvironment
    /// Every notification that the history has from before is stored.
    package let completeUntil: Instant
    /// Why it could not be read the last time; nil where it could.
    package let reason: String?
    /// Whether that was hours ago.
    package let isBehind: Bool
}

extension LedgerIntake {
    /// The longest stretch, in seconds: what is complete moves on with each, and Apple's tokens of pages do not last.
    static let catchUpStretchSeconds = 86_400.0
    /// How far Apple's history goes back, in days.
    static let (historyDays, historySandboxDays): (Int32, Int32) = (180, 30)
    /// The shortest interval and overlap with an accelerated App Store, in seconds.
    static let catchUpSecondsMin = 1.0
    /// How long a history may not have been complete until `status` says so, in seconds; the second one is the shortest
    /// with an accelerated App Store, where a worker that restarts needs some seconds.
    static let (catchUpBehindSeconds, catchUpBehindSecondsMin) = (10_800.0, 60.0)

    /// Has every history be read now, except those that a worker reads.
    package func hastenCatchUps() async throws { _ = try await write(Queries.hastenCatchUps) }

    /// Gives a worker the stretch that is due longest; nil where none is.
    package func takeCatchUp(for worker: WorkerID, leaseSeconds: Double) async throws -> CatchUp? {
        try await write(
            Queries.takeCatchUp,
            [
                .int4(worker.number), .float8(leaseSeconds), .float8(Self.catchUpStretchSeconds),
                .int4(Self.historyDays), .int4(Self.historySandboxDays),
            ]
        ).first.map { row in
            CatchUp(
                app: try NotifiedApp(row: row), environment: try row.word("environment"), kind: try row.word("kind"),
                from: try row.instant("reads_from"), until: try row.instant("reads_until"),
                page: try row.textIfPresent("page"), worker: worker)
        }
    }

    /// Records that a page was stored, with the token of the next one: nil after the last page, which completes the
    /// stretch. Returns false where another worker has the history.
    package func move(_ turn: CatchUp, to page: String?, leaseSeconds: Double) async throws -> Bool {
        let kind = turn.kind
        return try await !write(
            Queries.writeCatchUp,
            turn.key + [
                .text(page), .float8(leaseSeconds), .float8(hastened(kind.everySeconds)),
                .float8(hastened(kind.overlapSeconds)),
            ]
        ).isEmpty
    }

    /// Gives a history back for some seconds, with the reason where it could not be read. `anew`: the stretch is read from
    /// its start, or from some days later.
    package func rest(
        _ turn: CatchUp, seconds: Double, because reason: String?, anew: Bool = false, daysLater: Int = 0
    ) async throws {
        _ = try await write(
            Queries.restCatchUp,
            turn.key + [.float8(seconds), .text(reason), .bool(anew), .float8(Double(daysLater) * 86_400)])
    }

    /// How long a history rests that could not be read, in seconds.
    package func retrySeconds(of turn: CatchUp) -> Double { hastened(turn.kind.everySeconds / 12) }

    /// Returns the histories that cannot be read, or were not for a while.
    package func catchUpStandings() async throws -> [CatchUpStanding] {
        let behindSeconds = max(Self.catchUpBehindSecondsMin, hastened(Self.catchUpBehindSeconds))
        return try await query(Queries.statusCatchUps, [.float8(behindSeconds)]).map { row in
            CatchUpStanding(
                bundleID: BundleID(try row.text("bundle_id")), environment: try row.word("environment"),
                completeUntil: try row.instant("complete_until"), reason: try row.textIfPresent("reason"),
                isBehind: try row.bool("is_behind"))
        }
    }

    private func hastened(_ seconds: Double) -> Double { max(Self.catchUpSecondsMin, seconds / Double(ledger.speedup)) }
}

extension CatchUp {
    fileprivate var key: [Parameter] {
        [.int4(app.id), .text(environment.rawValue), .text(kind.rawValue), .int4(worker.number)]
    }
}
