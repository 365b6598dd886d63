/// The messages for failures detected on the client side.
extension DatabaseError {
    static func invalidConnectionString(_ reason: String) -> DatabaseError {
        DatabaseError(
            .cannotConnect,
            "The database connection string is not valid: \(reason); "
                + "use postgresql://user:password@host:port/database or host=… dbname=….")
    }

    /// The advice names what gave the address: `source`. libpq has no code for what failed, but its messages are not
    /// translated: Perennial sets no locale.
    static func cannotConnect(_ reason: String, by source: String) -> DatabaseError {
        let advice =
            if reason.contains("certificate") || reason.contains("SSL") {
                "check sslmode, sslrootcert (the authority that signed the server's certificate) and the server's "
                    + "certificate, its name and its dates"
            } else if reason.contains("authentication failed") || reason.contains("no password supplied") {
                "check the user and the password of \(source)"
            } else {
                "check that it runs and \(source)"
            }
        return DatabaseError(.cannotConnect, "Cannot connect to PostgreSQL: \(reason); \(advice).")
    }

    static func connectionLost(during name: String, _ reason: String) -> DatabaseError {
        DatabaseError(.connectionLost, "The connection to PostgreSQL was lost during '\(name)': \(reason).")
    }

    static func commitUnknown(_ reason: String) -> DatabaseError {
        DatabaseError(
            .commitUnknown,
            "The connection to PostgreSQL was lost during COMMIT, so it is not known whether the transaction was kept "
                + "(\(reason)); look before doing it again.")
    }

    static func statementTimedOut(_ name: String) -> DatabaseError {
        DatabaseError(.timedOut, "Statement '\(name)' was cancelled: by the statement time-out, or by an operator.")
    }

    static func waitedTooLong(for what: String, _ limit: Duration) -> DatabaseError {
        DatabaseError(
            .timedOut, "No answer for \(what) within \(limit.components.seconds) seconds; the database is overloaded.")
    }

    static func queueFull(_ limit: Int) -> DatabaseError {
        DatabaseError(.queueFull, "\(limit) callers wait for the database already; try again later.")
    }

    static let closed = DatabaseError(.closed, "The database was closed; no more work is taken.")
    static let cancelled = DatabaseError(.cancelled, "The caller was cancelled before the database answered.")
}
