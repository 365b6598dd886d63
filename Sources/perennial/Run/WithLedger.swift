import Foundation
import Ledger
import Postgres
import Tracking

/// Opens the database for `body` and always closes it. The schema may be missing.
///
/// The loss of the database and its return are logged once each. With `isBrief`, for a command that ends by itself,
/// only the command's own failure is reported.
func withUncheckedLedger<Result: Sendable>(
    _ settings: Settings, statementTimeoutMilliseconds: Int = 30_000, isBrief: Bool = false,
    _ body: (SubscriptionLedger) async throws -> Result
) async throws -> Result {
    let logger = settings.logger
    let database = Database(
        DatabaseConfiguration(
            connectionString: settings.database, addressSource: settings.databaseSource,
            statementTimeoutMilliseconds: statementTimeoutMilliseconds),
        note: DatabaseNotes(.database, logger: logger, isBrief: isBrief).take)
    let reads = settings.readDatabase.map { address in
        // The primary answers instead, so the wait for an unreachable standby is short.
        Database(
            DatabaseConfiguration(
                connectionString: address, addressSource: SettingName.databaseReadURL.rawValue, connectTimeoutSeconds: 1
            ),
            note: DatabaseNotes(.standby, logger: logger, isBrief: isBrief).take)
    }
    do {
        let seal = try settings.masterKey.map { try SecretSeal(masterKey: $0) }
        var ledger = SubscriptionLedger(
            database: database, reads: reads, seal: seal, speedup: settings.pollSpeedup)
        ledger.notificationWaitSeconds = settings.notificationWaitSeconds
        let result = try await body(ledger)
        await close(database, reads)
        return result
    } catch {
        await close(database, reads)
        throw error
    }
}

/// Opens the database for a one-shot command. A database that is down or not migrated ends the command with one
/// sentence, which the connections' own notes would only repeat. Writes are recorded for the user who runs the command.
func withLedger<Result: Sendable>(
    _ settings: Settings, _ body: (SubscriptionLedger) async throws -> Result
) async throws -> Result {
    try await withUncheckedLedger(settings, isBrief: true) { ledger in
        try await ledger.operations.requireMigrated()
        return try await body(ledger.acting(as: .user(NSUserName())))
    }
}

private func close(_ database: Database, _ reads: Database?) async {
    await database.close()
    await reads?.close()
}
