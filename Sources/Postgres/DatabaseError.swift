/// Why the database did not do what it was asked, and what to do now.
///
/// The message is one sentence and holds neither parameters' values nor the password.
package struct DatabaseError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The sort of failure.
    package enum Kind: Sendable, Hashable {
        /// The server refused the statement; names of constraint and table where it gave them.
        case server(sqlState: String, constraint: String?, table: String?)
        /// No connection within the connect time-out, or a connection string that is not valid.
        case cannotConnect
        /// The connection broke while the statement ran; a transaction was rolled back by that.
        case connectionLost
        /// The connection broke during COMMIT: the transaction may or may not have been kept.
        case commitUnknown
        /// The statement ran, or its caller waited, longer than allowed.
        case timedOut
        /// As many callers wait already as the queue holds.
        case queueFull
        /// The database was closed.
        case closed
        /// The caller's task was cancelled.
        case cancelled
        /// A column does not exist, is NULL, or has another type than was asked for.
        case decoding
    }

    /// What the caller should do with what it was doing.
    package enum Disposition: Sendable, Hashable {
        /// Do the same again after a while, in milliseconds.
        case retry(afterMilliseconds: Int)
        /// Give this piece of work up; the same again fails the same way.
        case reject
        /// Tell a human: the program, the schema or the set-up is wrong, or a commit is unknown.
        case alarm
    }

    /// The sort of failure.
    package let kind: Kind
    /// One sentence: what failed, where, what to do.
    package let message: String
    /// The prepared statement was gone or its plan no longer fit; it will be prepared anew.
    let isStalePreparation: Bool

    /// An error of a kind with its sentence.
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

    /// The server's five-character SQLSTATE; nil when the failure is not the server's answer.
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

    /// Whether the server is not there: the connection is gone, or there was none.
    package var isLoss: Bool {
        switch kind {
        case .cannotConnect, .connectionLost: true
        case .server, .commitUnknown, .timedOut, .queueFull, .closed, .cancelled, .decoding: false
        }
    }

    /// What to do now.
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

    /// By class of SQLSTATE (PostgreSQL, appendix A): bad data is the work's fault, most others are ours.
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
