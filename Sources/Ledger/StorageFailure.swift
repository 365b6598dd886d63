import Postgres

/// A failure of the database as the ledger's callers see it: what to do about it, without the driver's terms.
package struct StorageFailure: Sendable {
    private let error: DatabaseError

    fileprivate init(_ error: DatabaseError) { self.error = error }

    /// One sentence: what failed, where, and the remedy.
    package var message: String { error.message }

    /// Whether the server is unreachable: the connection was lost or never made.
    package var isLoss: Bool { error.isLoss }

    /// Whether the statement ran, or its caller waited, longer than the limit.
    package var isTimeout: Bool { error.kind == .timedOut }

    /// Whether this process stops: it closed the database or cancelled the work.
    package var isStop: Bool { error.kind == .closed || error.kind == .cancelled }

    /// Whether a value can never be stored, however often it is tried: SQLSTATE classes 22 and 23.
    package var isAboutAValue: Bool {
        error.sqlState.map { $0.hasPrefix("22") || $0.hasPrefix("23") } ?? false
    }

    /// Whether the same work may succeed later. A settlement may be repeated even after a commit of unknown outcome.
    package var mayPass: Bool {
        switch error.disposition {
        case .retry: true
        case .reject: false
        case .alarm: error.kind == .commitUnknown
        }
    }

    /// When a caller of the API should try again, in seconds; nil where the failure is the program's fault.
    package var retryAfterSeconds: Int? {
        switch error.kind {
        case .cannotConnect, .connectionLost, .commitUnknown, .timedOut, .queueFull, .closed, .cancelled: 1
        case .decoding: nil
        case .server:
            switch error.disposition {
            case .retry(let milliseconds): (milliseconds + 999) / 1000
            case .alarm: 30
            case .reject: nil
            }
        }
    }
}

extension Error {
    /// The failure of the database that this error is; nil for any other error.
    package var storageFailure: StorageFailure? { (self as? DatabaseError).map(StorageFailure.init) }
}

/// The load on the database's connections.
package struct StorageLoad: Sendable {
    /// The number of reads waiting to be sent.
    package let waitingReads: Int
    /// The number of callers waiting for an exclusive connection.
    package let waitingTransactions: Int
    /// The number of open connections for transactions.
    package let transactionConnections: Int

    init(_ load: DatabaseLoad) {
        waitingReads = load.waitingReads
        waitingTransactions = load.waitingTransactions
        transactionConnections = load.transactionConnections
    }
}
