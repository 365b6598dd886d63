import Crypto
import Foundation
import Postgres
import SQL

/// The result of a migration run.
package struct MigrationReport: Sendable {
    /// The names of the migrations applied by this run, in order.
    package let applied: [String]
    /// How many migrations the database has now.
    package let total: Int
    /// Whether the database has later migrations than this program knows, with which the program still works.
    package let isAhead: Bool
    /// The new place of the database, as after a restore; nil when its place is unchanged.
    package let feedRenewal: FeedRenewal?
}

extension LedgerOperations {
    /// Creates or upgrades the schema; safe to run from many machines at once.
    ///
    /// Refuses, and changes nothing, when an applied migration differs from this program's, or when the database has
    /// later ones that this program does not work with. Later ones that only add are left as they are.
    package func migrate() async throws -> MigrationReport {
        let (applied, total) = try await applyMigrations()
        try await addObservationMonths()
        return MigrationReport(
            applied: applied, total: total, isAhead: total > Migrations.all.count,
            feedRenewal: try await ledger.feed.checkPlace())
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

    /// Requires that the database has this program's migrations, and no later ones that the program does not work with;
    /// else the error says what to do.
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
                        + "cannot change it: use that version, or name a new database.")
            }
        }
    }

    /// Refuses later migrations with which this program does not work. Programs are replaced machine by machine, so
    /// this one accepts a schema that later programs have only added to.
    private static func refuseLaterHistory(_ compatibility: [Row]) throws {
        try refuseEarlierPrograms(than: compatibility.first?.int4("program_min") ?? .max)
    }

    /// Throws `mismatch` when this program knows fewer migrations than it must to work with the schema.
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

extension LedgerOperations {
    /// Makes room for the observations of this month and the next.
    package func addObservationMonths() async throws {
        _ = try await write(Queries.addObservationMonths)
    }
}

extension LedgerOperations {
    /// The SQL that grants the roles owner, worker, api and report their privileges, for managed databases.
    package static var roleScript: String {
        Queries.createRoles.text + "\n" + Queries.grantRoles.text
    }

    /// Creates the roles and grants each one only the privileges that it needs.
    package func grantRoles() async throws {
        try await database.transaction { transaction in
            try transaction.script(Queries.lockMigrations.text)
            try transaction.script(Self.roleScript)
        }
    }
}
