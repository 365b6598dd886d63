package import Postgres
import SQL
package import Subscriptions

/// Perennial's memory in PostgreSQL: claims, settlements, state, events, the feed, customers and lookups.
package struct SubscriptionLedger: Sendable {
    let database: Database
    let reads: Reads
    let seal: SecretSeal?
    let openedSecrets = OpenedSecrets()
    let acceptedSecrets = AcceptedSecrets()
    let knownChains = KnownChains()
    /// The orders that are being placed.
    let askedOrders = RequestGroups<AskedOrder, PlacedOrder?>(requestsMax: 100, groupsMax: 2, waitingMax: 1_000)
    /// The divisor of all delays with an accelerated App Store; 1 in production. The apps that this ledger reads carry
    /// it to their policies.
    package internal(set) var speedup: Int
    /// How long after a notification its check comes, in seconds.
    package var notificationWaitSeconds = 5.0
    /// Reads the texts of stored notifications. A ledger that reads none takes no details along.
    package var readNotification: ReadNotification = { _ in nil }
    /// The actor recorded for writes through this ledger; nil in workers.
    var actor: Actor?

    /// Creates a ledger on a primary; lookups read from a hot standby if there is one.
    ///
    /// Without a `seal`, everything works except operations that need an app's secret. All programs on one database
    /// have the same `speedup`.
    package init(database: Database, reads: Database? = nil, seal: SecretSeal? = nil, speedup: Int = 1) {
        self.database = database
        self.speedup = max(1, speedup)
        self.reads = Reads(primary: database, standby: reads)
        self.seal = seal
    }

    /// Shortens the waits for a database that is away, for a process that stops.
    package func beginLeaving() { database.beginLeaving() }

    /// Returns the standing of the hot standby that lookups read from.
    package func standby() async -> StandbyStanding { await reads.look() }

    /// Returns the database's clock.
    package func now() async throws -> Instant {
        guard let row = try await query(Queries.readClock).first else {
            throw LedgerError(.mismatch, "The database gave no time.")
        }
        return try row.instant("recorded_at")
    }

    func query(_ file: SQLFile, _ parameters: [Parameter] = []) async throws -> [Row] {
        try await database.query(Statement(file), parameters)
    }

    /// Runs one writing statement in a transaction of its own.
    func write(_ file: SQLFile, _ parameters: [Parameter] = []) async throws -> [Row] {
        try await database.write(Statement(file), parameters)
    }
}

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
