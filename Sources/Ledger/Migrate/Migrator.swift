import Crypto
import Foundation
import Postgres
import SQL

/// What a migration run did.
public struct MigrationReport: Sendable {
    /// The names of the migrations applied by this run, in order.
    public let applied: [String]
    /// How many migrations the database has now.
    public let total: Int
}

extension SubscriptionLedger {
    /// Creates or upgrades the schema; safe to run from many machines at once.
    ///
    /// Refuses when an applied migration differs from this program's, or when the database knows migrations that this
    /// program does not: then nothing is changed.
    public func migrate() async throws -> MigrationReport {
        let report = try await applyMigrations()
        try await addObservationMonths()
        return report
    }

    private func applyMigrations() async throws -> MigrationReport {
        try await database.transaction { transaction in
            try transaction.script(Queries.lockMigrations.text)
            let known = try transaction.query(Queries.readMigrations)
            try Self.refuseChangedHistory(known)
            var applied: [String] = []
            for migration in Migrations.all.dropFirst(known.count) {
                try transaction.script(migration.text)
                try transaction.query(
                    Queries.recordMigration, [.text(migration.name), .bytea(Self.fingerprint(of: migration))])
                applied.append(migration.name)
            }
            return MigrationReport(applied: applied, total: Migrations.all.count)
        }
    }

    /// Whether the database has exactly this program's migrations; the error says what to do when it has not.
    public func requireMigrated() async throws {
        let exists = try await query(Queries.isMigrated)
        guard try exists.first?.bool("migrated") == true else {
            throw LedgerError(.mismatch, "The database has no Perennial schema; run `perennial migrate` first.")
        }
        let known = try await query(Queries.readMigrations)
        try Self.refuseChangedHistory(known)
        guard known.count == Migrations.all.count else {
            throw LedgerError(
                .mismatch,
                "The database has \(known.count) of \(Migrations.all.count) migrations; run `perennial migrate`.")
        }
    }

    private static func refuseChangedHistory(_ known: [Row]) throws {
        guard known.count <= Migrations.all.count else {
            throw LedgerError(
                .mismatch,
                "The database has \(known.count) migrations and this program knows \(Migrations.all.count); "
                    + "run a newer perennial.")
        }
        for (row, migration) in zip(known, Migrations.all) {
            let (name, digest) = (try row.text("name"), try row.bytea("digest"))
            guard name == migration.name, digest == fingerprint(of: migration) else {
                throw LedgerError(
                    .mismatch,
                    "Migration \(name) was applied with another text than this program's \(migration.name); "
                        + "migrations never change once applied: use the program that matches this database.")
            }
        }
    }

    private static func fingerprint(of migration: SQLFile) -> [UInt8] {
        [UInt8](SHA256.hash(data: Data(migration.text.utf8)))
    }
}

extension SubscriptionLedger {
    /// Makes room for this month's and the next month's observations.
    public func addObservationMonths() async throws {
        _ = try await write(Queries.addObservationMonths)
    }
}
