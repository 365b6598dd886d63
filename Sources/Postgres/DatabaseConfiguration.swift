/// Where the database is and how much of it one process may use.
package struct DatabaseConfiguration: Sendable {
    /// A libpq URI or keyword string; empty means the `PG*` environment. May hold a password: never log it.
    package var connectionString: String
    /// The name shown in `pg_stat_activity`, unless the connection string sets `application_name` itself.
    package var applicationName: String
    /// Pipelined connections for reads, at least 1.
    package var readConnections: Int
    /// Exclusive connections for transactions, at least 1; each has its own thread.
    package var writeConnections: Int
    /// How long a caller waits for a connection, and one attempt to connect takes at most, in seconds, at least 1.
    package var connectTimeoutSeconds: Int
    /// How long one statement may run, in milliseconds, at least 1. The server enforces it; we do too, two seconds later.
    package var statementTimeoutMilliseconds: Int
    /// How many callers may wait for reads, and as many again for transactions, at least 1.
    package var queueLimit: Int

    /// A configuration; numbers below their minimum count as the minimum.
    package init(
        connectionString: String, applicationName: String = "perennial", readConnections: Int = 1,
        writeConnections: Int = 4, connectTimeoutSeconds: Int = 5, statementTimeoutMilliseconds: Int = 30_000,
        queueLimit: Int = 10_000
    ) {
        self.connectionString = connectionString
        self.applicationName = applicationName
        self.readConnections = max(1, readConnections)
        self.writeConnections = max(1, writeConnections)
        self.connectTimeoutSeconds = max(1, connectTimeoutSeconds)
        self.statementTimeoutMilliseconds = max(1, statementTimeoutMilliseconds)
        self.queueLimit = max(1, queueLimit)
    }

    /// Checks the connection string without connecting.
    /// - Throws: `.cannotConnect` with a sentence that says what is wrong, without quoting the string.
    package func validate() throws(DatabaseError) {
        _ = try ConnectionOptions(parsing: connectionString)
    }

    /// The same server and account, another database.
    /// - Throws: `.cannotConnect` when the connection string is not valid.
    package func connectionString(forDatabase name: String) throws(DatabaseError) -> String {
        var options = try ConnectionOptions(parsing: connectionString)
        options["dbname"] = name
        return options.keywordString
    }

    var connectTimeout: Duration { .seconds(connectTimeoutSeconds) }
    var statementTimeout: Duration { .milliseconds(statementTimeoutMilliseconds) }
    /// How long a caller waits for its turn while the database answers.
    var waitLimit: Duration { max(connectTimeout, statementTimeout) }
}
