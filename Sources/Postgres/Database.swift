/// PostgreSQL, as one process uses it: pipelined reads, and transactions with a connection of their own.
///
/// It connects when first asked, again after every loss, and never ends the process. Callers wait in lines of limited
/// length, for a limited time; see `DatabaseConfiguration`.
package final class Database: Sendable {
    private struct Pools: Sendable {
        let reads: ReadPool
        let writes: WritePool
    }

    private let configuration: DatabaseConfiguration
    private let pools: Result<Pools, DatabaseError>

    /// A database that connects when it is first asked. When the configuration is not valid every call throws the
    /// reason; `DatabaseConfiguration.validate()` tells it earlier.
    /// - Parameters:
    ///   - configuration: where it is, and the limits.
    ///   - note: takes what the log is told of connections lost and made. Called on the database's own threads, so it must
    ///     not block.
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

    /// Runs a statement that only reads, together with those of other callers, and answers its rows.
    ///
    /// The server refuses writes here (SQLSTATE 25006). A read may run twice when its connection breaks. A caller whose
    /// task is cancelled is answered at once.
    /// - Throws: any kind but `.commitUnknown`; `.cannotConnect` after the connect time-out.
    package func query(
        _ statement: Statement, _ parameters: [Parameter] = []
    ) async throws(DatabaseError) -> [Row] {
        try await pools.get().reads.query(statement, parameters)
    }

    /// Runs `body` in a READ COMMITTED transaction, on the thread of an exclusive connection, and commits; rolls back when
    /// it throws.
    ///
    /// A caller whose task is cancelled while it waits for a connection leaves the line; a body that runs is not
    /// interrupted. Nothing here is ever done twice.
    /// - Parameter body: synchronous; it should do no more than its statements and pure work between them.
    /// - Throws: what `body` throws, unchanged; `DatabaseError` with `.commitUnknown` when the connection broke during
    ///   COMMIT, or with the failure that the body caught but that spoiled the transaction.
    package func transaction<Result: Sendable>(
        _ body: @escaping @Sendable (Transaction) throws -> Result
    ) async throws -> Result {
        let milliseconds = configuration.statementTimeoutMilliseconds
        return try await pools.get().writes.perform { connection in
            connection.transaction(statementTimeoutMilliseconds: milliseconds, body)
        }
    }

    /// Runs one statement outside any transaction and without a time-out of ours, for what PostgreSQL allows only there
    /// (`CREATE DATABASE`, `CREATE INDEX CONCURRENTLY`).
    package func runOutsideTransaction(_ sql: String) async throws {
        try await pools.get().writes.perform { connection in
            do {
                _ = try connection.rows(of: connection.command(sql, named: "command", within: nil), "command")
                return .ended(.success(()))
            } catch {
                return .ended(.failure(error))
            }
        }
    }

    /// How busy the connections are; zero everywhere when the configuration is not valid.
    package var load: DatabaseLoad {
        guard case .success(let pools) = pools else { return DatabaseLoad() }
        let writes = pools.writes.load
        return DatabaseLoad(
            waitingReads: pools.reads.waiting.count, waitingTransactions: writes.waiting,
            transactionConnections: writes.connections)
    }

    /// Closes: work that runs finishes, callers that wait get `.closed`. Returns when all connections are closed; may be
    /// called more than once.
    package func close() async {
        guard case .success(let pools) = pools else { return }
        pools.reads.beginClosing()
        pools.writes.beginClosing()
        await pools.reads.awaitEnd()
        await pools.writes.awaitEnd()
    }
}

/// How busy a database's connections are.
package struct DatabaseLoad: Sendable, Hashable {
    /// Reads that wait to be sent.
    package var waitingReads = 0
    /// Callers that wait for a connection of their own.
    package var waitingTransactions = 0
    /// Open connections for transactions.
    package var transactionConnections = 0
}
