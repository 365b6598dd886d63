import Crypto
import Foundation
import Postgres
import SQL

/// What a migration run did.
package struct MigrationReport: Sendable {
    /// The names of the migrations applied by this run, in order.
    package let applied: [String]
    /// How many migrations the database has now.
    package let total: Int
    /// Whether the database has later migrations than this program knows, with which it works all the same.
    package let isAhead: Bool
    /// That the database lives elsewhere than before, as after a restore; nil where it is in its place.
    package let feedRenewal: FeedRenewal?
}

extension SubscriptionLedger {
    /// Creates or upgrades the schema; safe to run from many machines at once.
    ///
    /// Refuses when an applied migration differs from this program's, or when the database knows later ones that this
    /// program does not work with: then nothing is changed. Later ones that only add are left as they are.
    package func migrate() async throws -> MigrationReport {
        let (applied, total) = try await applyMigrations()
        try await addObservationMonths()
        return MigrationReport(
            applied: applied, total: total, isAhead: total > Migrations.all.count, feedRenewal: try await tendFeed())
    }

    private func applyMigrations() async throws -> (applied: [String], total: Int) {
        try await database.transaction { transaction in
            try transaction.script(Queries.lockMigrations.text)
            let known = try transaction.query(Queries.readMigrations)
            try Self.refuseChangedHistory(known)
            if known.count > Migrations.all.count {
                try Self.refuseLaterHistory(transaction.query(Queries.readCompatibility))
            }
            var applied: [String] = []
            for migration in Migrations.all.dropFirst(known.count) {
                try transaction.script(migration.text)
                try transaction.query(
                    Queries.recordMigration, [.text(migration.name), .bytea(Self.fingerprint(of: migration))])
                applied.append(migration.name)
            }
            return (applied, known.count + applied.count)
        }
    }

    /// Whether the database has this program's migrations, and no later ones that it does not work with; the error says
    /// what to do when it has not.
    package func requireMigrated() async throws {
        let exists = try await query(Queries.isMigrated)
        guard try exists.first?.bool("migrated") == true else {
            throw LedgerError(.mismatch, "The database has no Perennial schema; run `perennial migrate` first.")
        }
        let known = try await query(Queries.readMigrations)
        try Self.refuseChangedHistory(known)
        if known.count > Migrations.all.count {
            try Self.refuseLaterHistory(try await query(Queries.readCompatibility))
        }
        guard known.count >= Migrations.all.count else {
            throw LedgerError(
                .mismatch,
                "The database has \(known.count) of \(Migrations.all.count) migrations; run `perennial migrate`.")
        }
    }

    private static func refuseChangedHistory(_ known: [Row]) throws {
        for (row, migration) in zip(known, Migrations.all) {
            let (name, digest) = (try row.text("name"), try row.bytea("digest"))
            guard name == migration.name, digest == fingerprint(of: migration) else {
                throw LedgerError(
                    .mismatch,
                    "Another version of Perennial made the schema of this database (migration \(name)), and this version "
                        + "cannot change it: use that version, or name a new database in DATABASE_URL.")
            }
        }
    }

    /// A program is replaced machine by machine, so it goes on with a schema that later programs have only added to.
    private static func refuseLaterHistory(_ compatibility: [Row]) throws {
        try refuseEarlierPrograms(than: compatibility.first?.int4("program_min") ?? .max)
    }

    /// Throws `mismatch` when this program knows fewer migrations than one must to work with the schema.
    static func refuseEarlierPrograms(than programMin: Int32) throws {
        guard programMin <= Migrations.all.count else {
            throw LedgerError(
                .mismatch,
                "The database was changed for programs that know \(programMin) migrations and this one knows "
                    + "\(Migrations.all.count); run a newer perennial.")
        }
    }

    private static func fingerprint(of migration: SQLFile) -> [UInt8] {
        [UInt8](SHA256.hash(data: Data(migration.text.utf8)))
    }
}

extension SubscriptionLedger {
    /// Makes room for this month's and the next month's observations.
    package func addObservationMonths() async throws {
        _ = try await write(Queries.addObservationMonths)
    }
}
