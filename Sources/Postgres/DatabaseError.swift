import CLibPQ

/// A failed database call: the reason and the remedy, without parameter values and without the password.
package struct DatabaseError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Kind: Sendable, Hashable {
        /// The server refused the statement. Carries the names of constraint and table where the server gave them.
        case server(sqlState: String, constraint: String?, table: String?)
        /// No connection within the connect time-out, or an invalid connection string.
        case cannotConnect
        /// The connection broke while the statement ran; the server rolls a transaction back then.
        case connectionLost
        /// The connection broke during COMMIT, or during a statement that is a transaction of its own: the transaction may
        /// or may not have committed.
        case commitUnknown
        /// The statement ran, or its caller waited, longer than the limit.
        case timedOut
        case queueFull
        case closed
        case cancelled
        /// A column does not exist, is NULL, or has another type than requested.
        case decoding
    }

    /// The caller's next step.
    package enum Disposition: Sendable, Hashable {
        /// Repeat the same work after this many milliseconds.
        case retry(afterMilliseconds: Int)
        /// Give up this piece of work: a repetition fails the same way.
        case reject
        /// Alert an operator: the program, the schema or the set-up is wrong, or the outcome of a commit is unknown.
        case alarm
    }

    package let kind: Kind
    /// One sentence: what failed, where, and the remedy.
    package let message: String
    /// Whether the prepared statement was gone or its plan stale; it is then prepared again.
    let isStalePreparation: Bool

    /// Creates an error of a kind with its message.
    package init(_ kind: Kind, _ message: String, isStalePreparation: Bool = false) {
        self.kind = kind
        self.message = message
        self.isStalePreparation = isStalePreparation
    }

    package var description: String { message }

    /// The server's five-character SQLSTATE; nil when the failure did not come from the server.
    package var sqlState: String? { if case .server(let sqlState, _, _) = kind { sqlState } else { nil } }

    /// The violated constraint's name, when the server gave one.
    package var constraint: String? { if case .server(_, let constraint, _) = kind { constraint } else { nil } }

    /// Whether the whole transaction should be repeated: a serialization failure (40001) or a deadlock (40P01).
    package var isSerializationFailure: Bool { sqlState == "40001" || sqlState == "40P01" }

    /// Whether the server is unreachable: the connection was lost or never made.
    package var isLoss: Bool {
        switch kind {
        case .cannotConnect, .connectionLost: true
        case .server, .commitUnknown, .timedOut, .queueFull, .closed, .cancelled, .decoding: false
        }
    }

    /// The caller's next step.
    package var disposition: Disposition {
        if isStalePreparation { return .retry(afterMilliseconds: 0) }
        return switch kind {
        case .server(let sqlState, _, _): Self.disposition(ofState: sqlState)
        case .connectionLost: .retry(afterMilliseconds: 200)
        case .cannotConnect, .timedOut, .queueFull: .retry(afterMilliseconds: 1_000)
        case .closed, .cancelled: .reject
        case .commitUnknown, .decoding: .alarm
        }
    }

    /// Returns the disposition by class of SQLSTATE (PostgreSQL, appendix A): only bad data is the work's own fault.
    private static func disposition(ofState sqlState: String) -> Disposition {
        if sqlState == "55P03" || sqlState == "25006" { return .retry(afterMilliseconds: 500) }
        switch sqlState.prefix(2) {
        case "40": return .retry(afterMilliseconds: 20)
        case "08", "53", "57", "58": return .retry(afterMilliseconds: 1_000)
        case "22", "23": return .reject
        default: return .alarm
        }
    }
}

/// A note for the log about a database's connections. It never contains a secret.
package enum DatabaseNote: Sendable, Hashable, CustomStringConvertible {
    /// The purpose of connections.
    package enum Purpose: String, Sendable {
        case reads, transactions
    }

    /// No connection can be made, and the reason. Attempts go on whenever there is work, until one succeeds.
    case lost(Purpose, String)
    /// A connection was made after such a loss.
    case found(Purpose)
    /// A problem that is already solved, or will be with the next connection.
    case detail(String)

    package var description: String {
        switch self {
        case .lost(_, let reason): "\(reason) Trying again until it works."
        case .found(let purpose): "Connected to PostgreSQL for \(purpose.rawValue) again."
        case .detail(let sentence): sentence
        }
    }
}

/// The messages for failures detected on the client side.
extension DatabaseError {
    static func invalidConnectionString(_ reason: String) -> DatabaseError {
        DatabaseError(
            .cannotConnect,
            "The database connection string is not valid: \(reason); "
                + "use postgresql://user:password@host:port/database and \(percentEncoding), or host=… dbname=….")
    }

    private static let percentEncoding =
        "percent-encode reserved characters in the user and the password (@ is %40, / is %2F, # is %23, % is %25)"

    /// libpq has no code for what failed, but its words are never translated, because Perennial sets no locale.
    static func cannotConnect(_ reason: String, by source: String) -> DatabaseError {
        // The advice says as much as libpq's question does.
        let reason = reason.split(separator: "; ").filter { !$0.hasPrefix("Is the server running") }
            .joined(separator: "; ")
        let advice =
            if reason.contains("certificate") || reason.contains("SSL") {
                "check sslmode, sslrootcert (the authority that signed the server's certificate) and the server's "
                    + "certificate, its name and its dates"
            } else if reason.contains("authentication failed") || reason.contains("no password supplied") {
                "check the user and the password of \(source); in a URI \(percentEncoding)"
            } else if reason.contains("database \""), reason.contains("does not exist") {
                "create it (`createdb --owner USER --encoding UTF8 --template template0 NAME` as PostgreSQL's "
                    + "administrator), or correct its name in \(source)"
            } else if reason.contains("role \""), reason.contains("does not exist") {
                "create it (`createuser --createrole USER` as PostgreSQL's administrator), or correct the user of \(source)"
            } else if reason.contains("permission denied for database") {
                "let the user in (`GRANT CONNECT ON DATABASE NAME TO USER` as the owner of the database)"
            } else if reason.contains("is not permitted to log in") {
                "name an account that may log in, and grant it this role (`CREATE ROLE USER LOGIN PASSWORD '…' IN ROLE ROLE`)"
            } else if reason.contains("could not translate host name") {
                "check the host in \(source) and the name servers of this machine; in a URI \(percentEncoding)"
            } else {
                "check that it runs and \(source)"
            }
        return DatabaseError(.cannotConnect, "Cannot connect to PostgreSQL: \(reason); \(advice).")
    }

    /// PostgreSQL says what is refused, but neither whom nor what to do.
    static func advice(aboutRightsOf account: String) -> String {
        "; \(account) lacks this right. `perennial migrate` gives the roles their rights; the owner of the database runs it, "
            + "without CREATEROLE with --no-roles. \(account) needs the role of its work: perennial_worker for `worker`, "
            + "perennial_api for `serve` and `all`, perennial_report for `report`, perennial_owner for other commands."
    }

    static func connectionLost(during name: String, _ reason: String) -> DatabaseError {
        DatabaseError(.connectionLost, "The connection to PostgreSQL was lost during '\(name)': \(reason).")
    }

    /// `name`: COMMIT, or a statement that is a transaction of its own.
    static func commitUnknown(during name: String, _ reason: String) -> DatabaseError {
        DatabaseError(
            .commitUnknown,
            "The connection to PostgreSQL was lost during '\(name)', so it is not known whether the transaction was kept "
                + "(\(reason)); look before doing it again.")
    }

    static func statementTimedOut(_ name: String) -> DatabaseError {
        DatabaseError(.timedOut, "Statement '\(name)' was cancelled: by the statement time-out, or by an operator.")
    }

    static func waitedTooLong(for what: String, _ limit: Duration) -> DatabaseError {
        DatabaseError(.timedOut, "No answer for \(what) within \(limit); the database is overloaded, or hangs.")
    }

    static func queueFull(_ limit: Int) -> DatabaseError {
        DatabaseError(.queueFull, "\(limit) callers wait for the database already; try again later.")
    }

    static let closed = DatabaseError(.closed, "The database was closed; no more work is taken.")
    static let cancelled = DatabaseError(.cancelled, "The caller was cancelled before the database answered.")
}

/// One result, classified by its meaning.
enum ServerAnswer {
    case rows(ResultTable)
    /// The server refused the statement.
    case failure(DatabaseError)
    /// The server ends the connection, or the connection has ended.
    case lost(reason: String)
    /// An earlier statement of the same batch failed, so the server skipped this one.
    case aborted
    /// The end of a batch.
    case sync
    /// A result that no statement requested, such as the start of a COPY; the connection is unusable from then on.
    case unexpected(String)

    /// Takes ownership of the result, which came over a connection.
    init(_ result: OpaquePointer, of statementName: String, over connection: Connection) {
        switch PQresultStatus(result) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
            self = .rows(ResultTable(owning: result, of: statementName))
            return
        case PGRES_PIPELINE_SYNC: self = .sync
        case PGRES_PIPELINE_ABORTED: self = .aborted
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE: self = Self.failure(result, statementName, connection)
        default: self = .unexpected("'\(statementName)' began a transfer that is not supported (COPY)")
        }
        PQclear(result)
    }

    private static func failure(
        _ result: OpaquePointer, _ statementName: String, _ connection: Connection
    ) -> ServerAnswer {
        let text = field("M", of: result) ?? oneLine(String(cString: PQresultErrorMessage(result)))
        // Without a SQLSTATE libpq wrote the message itself. Shutdown and crash (57P01 to 57P03) end the connection.
        guard let sqlState = field("C", of: result), !["57P01", "57P02", "57P03"].contains(sqlState) else {
            return .lost(reason: text)
        }
        if sqlState == "57014" { return .failure(.statementTimedOut(statementName)) }
        // The server quotes the offending value in data errors. The value is the customer's and must not reach a log.
        let sentence = sqlState.hasPrefix("22") ? hidingQuotedText(in: text) : text
        // "cached plan must not change result type" may be translated; the name of the function that raises it is not.
        let isStale =
            sqlState == "26000" || (sqlState == "0A000" && field("R", of: result) == "RevalidateCachedQuery")
        return .failure(
            DatabaseError(
                .server(sqlState: sqlState, constraint: field("n", of: result), table: field("t", of: result)),
                "PostgreSQL refused '\(statementName)': \(oneLine(sentence)) (SQLSTATE \(sqlState))"
                    + (sqlState == "42501" ? DatabaseError.advice(aboutRightsOf: connection.account) : "."),
                isStalePreparation: isStale))
    }

    /// Returns a field of an error: message (M), SQLSTATE (C), constraint (n), table (t) or the server's function (R).
    /// The letters are those of `postgres_ext.h` (`PG_DIAG_…`), which Swift cannot import.
    private static func field(_ letter: Unicode.Scalar, of result: OpaquePointer) -> String? {
        PQresultErrorField(result, Int32(letter.value)).map { String(cString: $0) }
    }
}
