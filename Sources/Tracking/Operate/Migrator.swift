import Postgres
import SQL
package import Subscriptions

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
    /// Refuses, and changes nothing, when the encoding is not UTF8, when an applied migration is not this program's, or
    /// for later ones that do not only add; those that do are left as they are.
    package func migrate() async throws -> MigrationReport {
        let found = try await examineDatabase()
        guard found.isUTF8 else { throw LedgerError(.mismatch, found.encodingAdvice) }
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
                try transaction.query(Queries.recordMigration, .text(migration.name), .bytea(migration.text.sha256))
                applied.append(migration.name)
            }
            return (applied, known.count + applied.count)
        }
    }

    /// Requires that the database has this program's migrations, and no later ones that the program does not work with. It
    /// waits for each answer of the database within `limit`, where that is less than others wait.
    package func requireMigrated(within limit: Duration? = nil) async throws {
        func query(_ file: SQLFile) async throws -> [Row] {
            try await database.query(Statement(file), within: limit)
        }
        guard try await query(Queries.isMigrated).first?.bool("migrated") == true else {
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

    /// The first migration of every version before 0.1.0. The files of releases have other names.
    private static let developmentMigration = "0001_types"

    private static func refuseChangedHistory(_ known: [Row]) throws {
        for (row, migration) in zip(known, Migrations.all) {
            let (name, digest) = (try row.text("name"), try row.bytea("digest"))
            guard name != developmentMigration else {
                throw LedgerError(
                    .mismatch,
                    "A development version from before 0.1.0 made the schema of this database, and no release upgrades it: "
                        + "name a new database, and import the receipts again.")
            }
            guard name == migration.name, digest == migration.text.sha256 else {
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

    /// Makes room for the observations of this month and the next.
    package func addObservationMonths() async throws {
        _ = try await write(Queries.addObservationMonths)
    }

    /// The SQL that grants the roles owner, worker, api and report their privileges, for managed databases.
    package static var roleScript: String { Queries.createRoles.text + "\n" + Queries.grantRoles.text }

    /// Creates the roles and grants each one only the privileges that it needs.
    package func grantRoles() async throws {
        try await database.transaction { transaction in
            try transaction.script(Queries.lockMigrations.text)
            try transaction.script(Self.roleScript)
        }
    }
}

/// What an operator must know of the database before the first start.
package struct DatabaseExamination: Sendable, Hashable {
    /// The oldest PostgreSQL that Perennial works with, as its number.
    package static let versionMin: Int32 = 140_000

    /// PostgreSQL's version, as its number.
    package let version: Int32
    /// PostgreSQL's version, in words.
    package let versionText: String
    /// The encoding in which the database stores text, such as `UTF8`.
    package let encoding: String
    /// The installed version of the extension `btree_gist`; nil: it is not installed in this database.
    package let gistInstalled: String?
    /// The version of `btree_gist` that the server can install; nil: it cannot.
    package let gistAvailable: String?
    package let clock: Instant
    /// Whether it is a standby, which takes no writes.
    package let isStandby: Bool
    package let account: String
    /// Whether the account may create the schema.
    package let mayCreate: Bool

    /// Whether the database takes every text of a customer, and counts its characters.
    package var isUTF8: Bool { encoding == "UTF8" }
    /// What to do about another encoding.
    package var encodingAdvice: String {
        "The encoding of this database is \(encoding) and Perennial needs UTF8; make another database by "
            + "`createdb --owner USER --encoding UTF8 --template template0 NAME`, and name that one."
    }
}

/// What the account of this process has of a role's rights.
package struct HeldRole: Sendable, Hashable {
    /// The role, such as `perennial_api`.
    package let name: String
    /// Whether the account is a member of the role. A member that does not inherit lacks rights all the same.
    package let isMember: Bool
    /// The rights that `grantRoles` gives to the role and the account lacks, such as `select on ledger.api_key`.
    package let lacking: [String]
}

/// A sealed secret that this process cannot open.
package struct UnreadableSecret: Sendable, Hashable {
    package enum Kind: String, Sendable {
        case shared
        case serverKey = "server_key"
        case offerKey = "offer_key"
        /// The key of the newest order.
        case order
    }

    package let kind: Kind
    package let bundleID: BundleID
}

extension LedgerOperations {
    /// Looks at the database without changing it. It needs no schema. Throws `DatabaseError` where it cannot be asked.
    package func examineDatabase() async throws -> DatabaseExamination {
        guard let row = try await database.query(Statement(Queries.examineDatabase)).first else {
            throw LedgerError(.mismatch, "The database gave no answer about itself.")
        }
        return DatabaseExamination(
            version: try row.int4("version"), versionText: try row.text("version_text"),
            encoding: try row.text("encoding"),
            gistInstalled: try row.textIfPresent("gist_installed"),
            gistAvailable: try row.textIfPresent("gist_available"), clock: try row.instant("clock"),
            isStandby: try row.bool("is_standby"), account: try row.text("account"),
            mayCreate: try row.bool("may_create"))
    }

    /// Returns what the account has of the rights of each role; nothing where there is no schema.
    package func examineRights() async throws -> [HeldRole] {
        try await query(Queries.examineRights, .text(Queries.grantRoles.text)).map { row in
            HeldRole(name: try row.text("role"), isMember: try row.bool("is_member"), lacking: try row.texts("lacking"))
        }
    }

    /// Tries the master key on the sealed secrets that the account may read (a worker reads no offer key), and on the
    /// newest order's. Returns how many these are, and those that it does not open; without a master key all of them.
    package func examineSecrets() async throws -> (count: Int, unreadable: [UnreadableSecret]) {
        var rows = try await query(Queries.readSealedSecrets)
        if try await query(Queries.mayReadOfferKeys).first?.bool("may") == true {
            rows += try await query(Queries.readSealedOfferKeys)
        }
        let unreadable = try rows.compactMap { row -> UnreadableSecret? in
            let kind: UnreadableSecret.Kind = try row.word("kind")
            let bundleID = BundleID(try row.text("bundle_id"))
            let owner =
                switch kind {
                case .shared: bundleID.text
                case .serverKey: LedgerApps.serverKeyOwner(bundleID)
                case .offerKey: LedgerApps.offerKeyOwner(bundleID)
                case .order: LedgerOrders.keyOwner(try row.text("order_id"))
                }
            do {
                guard let seal = ledger.seal else { throw LedgerError(.mismatch, "There is no master key.") }
                _ = try seal.open(try row.bytea("sealed"), for: owner)
                return nil
            } catch {
                return UnreadableSecret(kind: kind, bundleID: bundleID)
            }
        }
        return (rows.count, unreadable)
    }
}
