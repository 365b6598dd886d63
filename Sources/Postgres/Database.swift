/// PostgreSQL, as one process uses it: pipelined reads, and transactions on exclusive connections. It connects on first
/// use, reconnects after every loss, and never ends the process. Callers wait in queues of limited length, for a
/// limited time; see `DatabaseConfiguration`.
package final class Database: Sendable {
    private struct Pools: Sendable {
        let reads: ReadPool
        let writes: WritePool
    }

    private let configuration: DatabaseConfiguration
    private let pools: Result<Pools, DatabaseError>

    /// Creates a database that connects on first use. When the configuration is invalid, every call throws the reason;
    /// `DatabaseConfiguration.validate()` reports it earlier.
    /// - Parameter note: receives the log's notes about connections lost and made; it is called on the database's own
    ///   threads, so it must not block.
    package init(_ configuration: DatabaseConfiguration, note: @escaping @Sendable (DatabaseNote) -> Void) {
        self.configuration = configuration
        do throws(DatabaseError) {
            let pools = Pools(
                reads: ReadPool(configuration, try ConnectionSettings(configuration, for: .reads), note: note),
                writes: WritePool(configuration, try ConnectionSettings(configuration, for: .transactions), note: note))
            let writes = pools.writes
            let haveStarted = [pools.reads.start { writes.expire(at: $0) }, writes.start()]
            self.pools = .success(pools)
            guard haveStarted.contains(false) else { return }
            note(.detail("The system has no thread left for the database; it stays closed."))
            pools.reads.beginClosing()
            pools.writes.beginClosing()
        } catch {
            note(.detail(error.message))
            pools = .failure(error)
        }
    }

    deinit {
        guard case .success(let pools) = pools else { return }
        pools.reads.beginClosing()
        pools.writes.beginClosing()
    }

    /// Runs a read-only statement, pipelined with those of other callers, and returns its rows.
    ///
    /// The server refuses writes here (SQLSTATE 25006). A read may run twice when its connection breaks. The call
    /// returns at once when the caller's task is cancelled.
    /// - Parameter isShared: whether equal reads of other callers share the statement. It then takes arrays of text, to
    ///   which each caller gives one element, and its column `place` says to which element a row belongs, from 1. Values
    ///   that the server refuses fail alone.
    /// - Parameter limit: how long the caller waits, to a tenth of a second or two, where that is less than it would.
    /// - Throws: any kind except `.commitUnknown`; `.cannotConnect` after the connect time-out or without a connection at
    ///   the caller's limit, else `.timedOut` there.
    nonisolated(nonsending) package func query(
        _ statement: Statement, _ parameters: [Parameter] = [], isShared: Bool = false, within limit: Duration? = nil
    ) async throws(DatabaseError) -> [Row] {
        try await pools.get().reads.query(statement, parameters, isShared: isShared, within: limit)
    }

    /// Runs `body` in a READ COMMITTED transaction, on the thread of an exclusive connection, and commits; rolls back
    /// when it throws.
    ///
    /// A caller whose task is cancelled while it waits for a connection leaves the queue. A running body is not
    /// interrupted. Nothing here ever runs twice.
    /// - Parameter body: synchronous; it should contain only its statements and pure work between them.
    /// - Throws: any error of `body`, unchanged; `DatabaseError` with `.commitUnknown` when the connection breaks
    ///   during COMMIT, or the failure that the body caught but that spoiled the transaction.
    package func transaction<Result: Sendable>(
        _ body: @escaping @Sendable (Transaction) throws -> Result
    ) async throws -> Result {
        let milliseconds = configuration.statementTimeoutMilliseconds
        return try await pools.get().writes.perform { connection in
            connection.transaction(statementTimeoutMilliseconds: milliseconds, body)
        }
    }

    /// Runs one statement as a READ COMMITTED transaction of its own, in one round trip, and returns its rows.
    /// - Throws: as `transaction`; `.commitUnknown` when the connection breaks after the statement was sent,
    ///   `.connectionLost` when it does before.
    package func write(_ statement: Statement, _ parameters: [Parameter] = []) async throws -> [Row] {
        let milliseconds = configuration.statementTimeoutMilliseconds
        return try await pools.get().writes.perform { connection in
            connection.transaction(of: statement, parameters, statementTimeoutMilliseconds: milliseconds)
        }
    }

    /// Runs one statement, such as `CREATE DATABASE`, outside any transaction and without our time-out.
    package func runOutsideTransaction(_ sql: String) async throws {
        try await pools.get().writes.perform { connection in
            let answer = connection.command(sql, named: "command", within: nil)
            return .ended(Result { _ = try connection.rows(of: answer, "command") })
        }
    }

    /// The load on the connections; all zero when the configuration is invalid.
    package var load: DatabaseLoad {
        guard case .success(let pools) = pools else { return DatabaseLoad() }
        let writes = pools.writes.load
        return DatabaseLoad(
            waitingReads: pools.reads.waiting.count, waitingTransactions: writes.waiting,
            transactionConnections: writes.connections)
    }

    /// Shortens the wait for a connection, for a process that stops: while the database is away, its last steps fail soon
    /// instead of one after the other after the connect time-out. Open connections are used as before.
    package func shortenWaitsForStop() {
        guard case .success(let pools) = pools else { return }
        pools.reads.shortenWaitsForStop()
        pools.writes.shortenWaitsForStop()
    }

    /// Closes the database: running work finishes, waiting callers get `.closed`. Returns when all connections are
    /// closed; may be called more than once. A connection that is being made while the database is away is not waited
    /// for, because resolving a name may take long; it is closed once it is made.
    package func close() async {
        guard case .success(let pools) = pools else { return }
        pools.reads.beginClosing()
        pools.writes.beginClosing()
        await pools.reads.awaitEnd()
        await pools.writes.awaitEnd()
    }
}

/// How many callers wait, and how many connections are open.
package struct DatabaseLoad: Sendable, Hashable {
    /// The number of reads waiting to be sent.
    package var waitingReads = 0
    /// The number of callers waiting for an exclusive connection.
    package var waitingTransactions = 0
    /// The number of open connections for transactions.
    package var transactionConnections = 0
}

/// The address of the database and the resources one process may use.
package struct DatabaseConfiguration: Sendable {
    /// A libpq URI or keyword string; empty means the `PG*` environment. May hold a password: never log it.
    package var connectionString: String
    /// What gave the address, by its name in messages: a setting, or some.
    package var addressSource: String
    /// Pipelined connections for reads, at least 1.
    package var readConnections: Int
    /// Exclusive connections for transactions, at least 1; each has its own thread.
    package var writeConnections: Int
    /// The longest wait of a caller for a connection, and the longest attempt to connect, in seconds, at least 1.
    package var connectTimeoutSeconds: Int
    /// The longest run of one statement, in milliseconds, at least 1. The server enforces it; we do two seconds later.
    package var statementTimeoutMilliseconds: Int
    /// The most callers that may wait for reads, and separately for transactions, at least 1.
    package var queueLimit: Int

    /// Creates a configuration; numbers below their minimum are raised to the minimum.
    package init(
        connectionString: String, addressSource: String = "DATABASE_URL", readConnections: Int = 1,
        writeConnections: Int = 4, connectTimeoutSeconds: Int = 5,
        statementTimeoutMilliseconds: Int = 30_000, queueLimit: Int = 10_000
    ) {
        self.connectionString = connectionString
        self.addressSource = addressSource
        self.readConnections = max(1, readConnections)
        self.writeConnections = max(1, writeConnections)
        self.connectTimeoutSeconds = max(1, connectTimeoutSeconds)
        self.statementTimeoutMilliseconds = max(1, statementTimeoutMilliseconds)
        self.queueLimit = max(1, queueLimit)
    }

    /// Throws `.cannotConnect` unless the connection string is valid; its sentence says why and quotes nothing of it.
    package func validate() throws(DatabaseError) { _ = try ConnectionOptions(parsing: connectionString) }

    /// Returns a connection string for another database of the same server and account; throws as `validate`.
    package func connectionString(forDatabase name: String) throws(DatabaseError) -> String {
        var options = try ConnectionOptions(parsing: connectionString)
        options.values["dbname"] = name
        return options.keywordString
    }

    /// The longest wait of a caller for a connection that is missing while the process stops: enough for one attempt.
    static let leavingTimeout = Duration.milliseconds(500)

    var connectTimeout: Duration { .seconds(connectTimeoutSeconds) }
    var statementTimeout: Duration { .milliseconds(statementTimeoutMilliseconds) }
    /// The longest wait of a caller for its turn while the database responds.
    var waitLimit: Duration { max(connectTimeout, statementTimeout) }
}
