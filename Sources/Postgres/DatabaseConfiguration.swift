/// The address of the database and the resources one process may use.
package struct DatabaseConfiguration: Sendable {
    /// A libpq URI or keyword string; empty means the `PG*` environment. May hold a password: never log it.
    package var connectionString: String
    /// What gave the address, by its name in messages: a setting, or some.
    package var addressSource: String
    /// The name shown in `pg_stat_activity`, unless the connection string sets `application_name` itself.
    package var applicationName: String
    /// Pipelined connections for reads, at least 1.
    package var readConnections: Int
    /// Exclusive connections for transactions, at least 1; each has its own thread.
    package var writeConnections: Int
    /// The longest wait of a caller for a connection, and the longest attempt to connect, in seconds, at least 1.
    package var connectTimeoutSeconds: Int
    /// The longest run of one statement, in milliseconds, at least 1. The server enforces it; so do we, two seconds
    /// later.
    package var statementTimeoutMilliseconds: Int
    /// The most callers that may wait for reads, and separately for transactions, at least 1.
    package var queueLimit: Int

    /// Creates a configuration; numbers below their minimum are raised to the minimum.
    package init(
        connectionString: String, addressSource: String = "DATABASE_URL", applicationName: String = "perennial",
        readConnections: Int = 1, writeConnections: Int = 4, connectTimeoutSeconds: Int = 5,
        statementTimeoutMilliseconds: Int = 30_000, queueLimit: Int = 10_000
    ) {
        self.connectionString = connectionString
        self.addressSource = addressSource
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

    /// Returns a connection string for the same server and account and another database.
    /// - Throws: `.cannotConnect` when the connection string is not valid.
    package func connectionString(forDatabase name: String) throws(DatabaseError) -> String {
        var options = try ConnectionOptions(parsing: connectionString)
        options["dbname"] = name
        return options.keywordString
    }

    /// The longest wait of a caller for a connection that is missing while the process stops: enough for one attempt.
    static let leavingTimeout = Duration.milliseconds(500)

    var connectTimeout: Duration { .seconds(connectTimeoutSeconds) }
    var statementTimeout: Duration { .milliseconds(statementTimeoutMilliseconds) }
    /// The longest wait of a caller for its turn while the database responds.
    var waitLimit: Duration { max(connectTimeout, statementTimeout) }
}
