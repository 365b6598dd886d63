/// A failed database call: the reason and the remedy.
///
/// The message is one sentence and contains neither parameter values nor the password.
package struct DatabaseError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure.
    package enum Kind: Sendable, Hashable {
        /// The server refused the statement. Carries the names of constraint and table where the server gave them.
        case server(sqlState: String, constraint: String?, table: String?)
        /// No connection within the connect time-out, or an invalid connection string.
        case cannotConnect
        /// The connection broke while the statement ran; the server rolls a transaction back then.
        case connectionLost
        /// The connection broke during COMMIT: the transaction may or may not have committed.
        case commitUnknown
        /// The statement ran, or its caller waited, longer than the limit.
        case timedOut
        /// The queue is full.
        case queueFull
        /// The database was closed.
        case closed
        /// The caller's task was cancelled.
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

    /// The kind of failure.
    package let kind: Kind
    /// One sentence: what failed, where, and the remedy.
    package let message: String
    /// Whether the prepared statement was gone or its plan stale; it is then prepared again.
    let isStalePreparation: Bool

    /// Creates an error of a kind with its message.
    package init(_ kind: Kind, _ message: String) {
        self.init(kind, message, isStalePreparation: false)
    }

    init(_ kind: Kind, _ message: String, isStalePreparation: Bool) {
        self.kind = kind
        self.message = message
        self.isStalePreparation = isStalePreparation
    }

    /// The message.
    package var description: String { message }

    /// The server's five-character SQLSTATE; nil when the failure did not come from the server.
    package var sqlState: String? {
        guard case .server(let sqlState, _, _) = kind else { return nil }
        return sqlState
    }

    /// The violated constraint's name, when the server gave one.
    package var constraint: String? {
        guard case .server(_, let constraint, _) = kind else { return nil }
        return constraint
    }

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

    /// Returns the disposition by class of SQLSTATE (PostgreSQL, appendix A): bad data is the fault of the work, most
    /// others are ours.
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
