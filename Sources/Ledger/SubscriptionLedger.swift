import Postgres
import SQL

/// What Perennial remembers, in PostgreSQL: claims, settlements, state, events, the feed, customers and lookups.
package struct SubscriptionLedger: Sendable {
    let database: Database
    let reads: Reads
    let seal: SecretSeal?
    let openedSecrets = OpenedSecrets()
    /// Who writes through it; nil in the workers.
    var actor: Actor?

    /// A ledger on a primary, with lookups from a hot standby if there is one.
    ///
    /// Without a `seal` everything works that needs no app's secret.
    package init(database: Database, reads: Database? = nil, seal: SecretSeal? = nil) {
        self.database = database
        self.reads = Reads(primary: database, standby: reads)
        self.seal = seal
    }

    /// How the hot standby is doing that lookups are read from.
    package func standby() async -> StandbyStanding { await reads.look() }

    func query(_ file: SQLFile, _ parameters: [Parameter] = []) async throws -> [Row] {
        try await database.query(Statement(file), parameters)
    }

    /// Runs one writing statement in a transaction of its own.
    func write(_ file: SQLFile, _ parameters: [Parameter] = []) async throws -> [Row] {
        try await database.transaction { try $0.query(file, parameters) }
    }
}

/// A failure of the database: what happened, and what to do.
package typealias StorageError = DatabaseError

extension Statement {
    init(_ file: SQLFile) {
        self.init(name: file.name, sql: file.text)
    }
}

extension Transaction {
    @discardableResult
    func query(_ file: SQLFile, _ parameters: [Parameter] = []) throws -> [Row] {
        try query(Statement(file), parameters)
    }
}
