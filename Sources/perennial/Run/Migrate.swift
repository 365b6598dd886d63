import ArgumentParser
import Logging
import Postgres
import ServiceLifecycle
import Synchronization
import Tracking

struct MigrateCommand: AsyncParsableCommand {
    /// The longest time that one statement of an upgrade may take: an upgrade may rewrite large tables.
    static let statementHoursMax = 6

    static let configuration = CommandConfiguration(
        "migrate", "Creates or upgrades the schema; safe to run from many machines at once.",
        notes: """
            Prints each migration it applied. Applied migrations never change: a database that knows others than this \
            program is refused and left as it is, unless they are later ones that this program works with.
            """,
        examples: "DATABASE_URL=postgresql:///perennial perennial migrate")

    @Flag(name: .customLong("no-roles"), help: "Do not make roles; print the SQL that does, for managed databases.")
    var withoutRoles = false

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        let timeout = Self.statementHoursMax * 3_600_000
        try await withUncheckedLedger(settings, statementTimeoutMilliseconds: timeout, isBrief: true) { ledger in
            let report = try await ledger.operations.migrate()
            for name in report.applied { sayProgress("applied \(name)") }
            sayProgress("The schema has \(report.total) migrations, \(report.applied.count) of them new.")
            if let renewal = report.feedRenewal { sayProgress(renewal.text) }
            // An older program could grant permissions again that were revoked since.
            guard !report.isAhead else {
                return sayProgress(
                    "Some are later than this program; it works with them and leaves the roles as they are.")
            }
            guard withoutRoles else { return try await ledger.operations.grantRoles() }
            printLine(LedgerOperations.roleScript)
        }
    }

    /// Prints progress. With `--no-roles` standard output is for SQL only.
    private func sayProgress(_ line: String) {
        if withoutRoles { printLine("-- \(line)") } else { printLine(line) }
    }
}

/// A worker that starts when the database answers and is migrated. Until then it retries and logs it.
struct DatabaseWait: Service {
    static let waitSecondsMax = 30

    let tracker: Tracker

    func run() async throws {
        var waitSeconds = 1
        var said: String?
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            do {
                try await tracker.ledger.operations.requireMigrated()
                return try await Worker(tracker).run()
            } catch let error as DatabaseError {
                guard case .retry = error.disposition else { throw error }
                // The database's connections log their loss; any other failure is logged here.
                let level: Logger.Level = error.isLoss || error.message == said ? .debug : .error
                tracker.logger.log(level: level, "\(error.message)", metadata: ["again_in_seconds": "\(waitSeconds)"])
                said = error.message
            }
            let seconds = waitSeconds
            await cancelWhenGracefulShutdown { await pause(seconds: seconds) }
            waitSeconds = min(waitSeconds * 2, Self.waitSecondsMax)
        }
    }
}

/// Waits; returns early when the task is cancelled.
func pause(seconds: Int) async {
    // Only a cancellation makes the sleep fail, and then there is nothing left to wait for.
    try? await Task.sleep(for: .seconds(seconds))
}

/// Ends a long-running command early when the database answers but its schema does not fit this program. When the
/// database is down, or takes more than three seconds for an answer, the command goes on and waits for it.
func examineAtStart(_ ledger: SubscriptionLedger, _ settings: Settings) async throws {
    do {
        try await ledger.operations.requireMigrated(within: .seconds(3))
    } catch let error as DatabaseError {
        guard case .retry = error.disposition else { throw error }
        settings.logger.log(level: error.isLoss ? .debug : .error, "\(error.message)")
    }
}

/// A log of the primary's loss and return, one line each, however many connections notice.
final class DatabaseNotes: Sendable {
    private let logger: Logger
    private let isBrief: Bool
    private let conditions: ConditionMonitor
    /// The purposes, reads or transactions, whose connections are lost now.
    private let lost = Mutex<Set<DatabaseNote.Purpose>>([])

    /// Creates notes for `logger`; with `isBrief` only at its debug level.
    init(logger: Logger, isBrief: Bool) {
        self.logger = logger
        self.isBrief = isBrief
        conditions = ConditionMonitor(logger: logger)
    }

    /// Records a note from the database. The database is back when it is back for every purpose that lost it.
    func take(_ note: DatabaseNote) {
        logger.debug("\(note)")
        guard !isBrief else { return }
        lost.withLock { lost in
            switch note {
            case .lost(let purpose, let reason):
                lost.insert(purpose)
                conditions.raise(.database, by: reason)
            case .found(let purpose):
                lost.remove(purpose)
                if lost.isEmpty { conditions.clear(.database) }
            case .detail: break
            }
        }
    }
}
