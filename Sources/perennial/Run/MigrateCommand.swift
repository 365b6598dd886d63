import ArgumentParser
import Ledger

/// `perennial migrate`
struct MigrateCommand: AsyncParsableCommand {
    /// The longest time that one statement of an upgrade may take: an upgrade may rewrite large tables.
    static let statementHoursMax = 6

    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Creates or upgrades the schema; safe to run from many machines at once.",
        discussion: """
            Prints each migration it applied. Applied migrations never change: a database that knows others than this \
            program is refused and left as it is, unless they are later ones that this program works with.

            Example:
              DATABASE_URL=postgresql:///perennial perennial migrate
            """)

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
