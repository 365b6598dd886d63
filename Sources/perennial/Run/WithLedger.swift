import Foundation
import Ledger
import Postgres

/// Opens the database for `body` and closes it whatever happens. The schema may be missing.
///
/// The log is told once when the database goes and once when it is back; with `isBrief`, of a command that ends by itself,
/// only the command's own failure tells.
func withUncheckedLedger<Result: Sendable>(
    _ settings: Settings, statementTimeoutMilliseconds: Int = 30_000, isBrief: Bool = false,
    _ body: (SubscriptionLedger) async throws -> Result
) async throws -> Result {
    let logger = settings.logger
    let database = Database(
        DatabaseConfiguration(
            connectionString: settings.database, statementTimeoutMilliseconds: statementTimeoutMilliseconds),
        note: DatabaseNotes(.database, logger: logger, isBrief: isBrief).take)
    let reads = settings.readDatabase.map { address in
        // There is the primary to ask instead, so nobody waits long for a standby that is away.
        Database(
            DatabaseConfiguration(connectionString: address, connectTimeoutSeconds: 1),
            note: DatabaseNotes(.standby, logger: logger, isBrief: isBrief).take)
    }
    do {
        let seal = try settings.masterKey.map { try SecretSeal(masterKey: $0) }
        let result = try await body(SubscriptionLedger(database: database, reads: reads, seal: seal))
        await close(database, reads)
        return result
    } catch {
        await close(database, reads)
        throw error
    }
}

/// The same for one-shot commands: a database that is down or not migrated ends the command with one sentence, and the
/// connections' own notes about it would only repeat that. What is written is remembered as the user's who runs it.
func withLedger<Result: Sendable>(
    _ settings: Settings, _ body: (SubscriptionLedger) async throws -> Result
) async throws -> Result {
    try await withUncheckedLedger(settings, isBrief: true) { ledger in
        try await ledger.requireMigrated()
        return try await body(ledger.acting(as: .user(NSUserName())))
    }
}

private func close(_ database: Database, _ reads: Database?) async {
    await database.close()
    await reads?.close()
}
