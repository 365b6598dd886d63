import CLibPQ

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A running transaction, for use only inside the body that receives it. Its calls block the connection's thread.
/// After a failed statement PostgreSQL refuses all others, and a body that catches the error cannot commit either.
package final class Transaction {
    private let connection: Connection
    private let statementTimeoutMilliseconds: Int
    private var isOver = false
    /// The first failure; a transaction with a failure cannot be committed.
    private(set) var failure: DatabaseError?

    init(on connection: Connection, statementTimeoutMilliseconds: Int) {
        self.connection = connection
        self.statementTimeoutMilliseconds = statementTimeoutMilliseconds
    }

    /// Runs a statement and returns its rows; throws `.server`, `.timedOut` or `.connectionLost`.
    @discardableResult
    package func query(_ statement: Statement, _ parameters: [Parameter] = []) throws(DatabaseError) -> [Row] {
        try run(statement, parameters).rows
    }

    /// Runs a statement and returns the number of rows it changed; throws as `query`.
    @discardableResult
    package func execute(_ statement: Statement, _ parameters: [Parameter] = []) throws(DatabaseError) -> Int {
        try run(statement, parameters).affectedRows
    }

    /// Runs statements without parameters for migrations, separated by semicolons and without a time-out unless they
    /// set one. They must not end the transaction.
    /// - Throws: `.server` or `.connectionLost`.
    package func script(_ sql: String) throws(DatabaseError) {
        try command("SET LOCAL statement_timeout = 0")
        try command(sql)
        try command("SET LOCAL statement_timeout = \(statementTimeoutMilliseconds)")
    }

    /// Ends all use of the transaction, in case the body kept a reference.
    func end() { isOver = true }

    /// Runs a statement within the time limit of the transaction.
    private func run(_ statement: Statement, _ parameters: [Parameter]) throws(DatabaseError) -> ResultTable {
        try noting { () throws(DatabaseError) in
            try connection.run(statement, parameters, within: .milliseconds(statementTimeoutMilliseconds))
        }
    }

    private func command(_ sql: String) throws(DatabaseError) {
        _ = try noting { () throws(DatabaseError) in
            try connection.rows(of: connection.command(sql, named: "script", within: nil), "script")
        }
    }

    /// Remembers the first failure.
    private func noting(_ work: () throws(DatabaseError) -> ResultTable) throws(DatabaseError) -> ResultTable {
        if isOver { throw .closed }
        do {
            return try work()
        } catch {
            failure = failure ?? error
            throw error
        }
    }
}

/// The outcome of a writer's work.
enum TransactionEnd<Value> {
    /// The connection turned out to be dead before any request reached the server: the work may try another connection.
    case neverBegan(DatabaseError)
    case ended(Result<Value, any Error>)
}

extension Connection {
    /// Runs BEGIN, the body and COMMIT; ROLLBACK when the body throws or a statement failed.
    func transaction<Value>(
        statementTimeoutMilliseconds: Int, _ body: (Transaction) throws -> Value
    ) -> TransactionEnd<Value> {
        let limit = Duration.milliseconds(statementTimeoutMilliseconds)
        do {
            _ = try rows(of: command(begin, named: "BEGIN", within: limit), "BEGIN")
        } catch {
            return isBroken ? .neverBegan(error) : .ended(.failure(error))
        }

        let transaction = Transaction(on: self, statementTimeoutMilliseconds: statementTimeoutMilliseconds)
        let outcome = Result { try body(transaction) }
        transaction.end()
        do {
            let value = try outcome.get()
            if let failure = transaction.failure { throw failure }
            try commit(within: limit)
            return .ended(.success(value))
        } catch {
            rollBack(within: limit)
            return .ended(.failure(error))
        }
    }

    /// Runs one statement as a transaction of its own. A borrowed session needs its settings with it.
    func transaction(
        of statement: Statement, _ parameters: [Parameter], statementTimeoutMilliseconds: Int
    ) -> TransactionEnd<[Row]> {
        switch session {
        case .borrowed:
            return transaction(statementTimeoutMilliseconds: statementTimeoutMilliseconds) { transaction in
                try transaction.query(statement, parameters)
            }
        case .own:
            let limit = Duration.milliseconds(statementTimeoutMilliseconds)
            do {
                if let error = DatabaseError.tooManyParameters(statement, parameters) { throw error }
                // A connection that is lost meanwhile is lost before the statement was sent.
                let name = try preparedName(of: statement, parameters, within: limit)
                let answer = collect(sendRun(name, parameters), statement.name, within: limit)
                return .ended(.success(try lastRows(of: answer, statement.name).rows))
            } catch {
                return .ended(.failure(error))
            }
        }
    }

    /// The BEGIN command, with the settings of a borrowed session: one round trip either way.
    private var begin: String {
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
        return switch session {
        case .own: begin
        case .borrowed: begin + "; " + settings.commands
        }
    }

    private func commit(within limit: Duration) throws(DatabaseError) {
        let table = try lastRows(of: command("COMMIT", named: "COMMIT", within: limit), "COMMIT")
        guard table.commandTag != "COMMIT" else { return }
        throw DatabaseError(
            .server(sqlState: "25P02", constraint: nil, table: nil),
            "PostgreSQL answered COMMIT with \(table.commandTag): the transaction was not kept.")
    }

    /// Returns the rows of the answer with which a transaction ends; throws an error for any other answer.
    private func lastRows(of answer: ServerAnswer, _ name: String) throws(DatabaseError) -> ResultTable {
        switch answer {
        case .lost(let reason), .unexpected(let reason): throw .commitUnknown(during: name, reason)
        case .aborted, .sync: throw .commitUnknown(during: name, "an answer that belongs to a pipeline")
        // An error on a live connection is definite: a deferred constraint failed and nothing was committed.
        case .failure(let error) where isBroken: throw .commitUnknown(during: name, error.message)
        case .failure, .rows: return try rows(of: answer, name)
        }
    }

    /// Leaves the connection idle or broken; the server rolls back a broken one itself.
    private func rollBack(within limit: Duration) {
        guard !isBroken, PQtransactionStatus(pointer) != PQTRANS_IDLE else { return }
        _ = command("ROLLBACK", named: "ROLLBACK", within: limit)
        if PQtransactionStatus(pointer) != PQTRANS_IDLE { isBroken = true }
    }
}

/// Statements that run one at a time, each awaited, on a writer's thread.
extension Connection {
    /// How much later than the server we enforce a time-out, and how long we then wait for the cancellation.
    static let slack = Duration.seconds(2)

    /// Runs a statement; in our own session it is prepared first if necessary.
    func run(
        _ statement: Statement, _ parameters: [Parameter], within limit: Duration
    ) throws(DatabaseError) -> ResultTable {
        if let error = DatabaseError.tooManyParameters(statement, parameters) { throw error }
        let wasSent =
            switch session {
            case .own: sendRun(try preparedName(of: statement, parameters, within: limit), parameters)
            case .borrowed: sendWhole(statement, parameters)
            }
        return try rows(of: collect(wasSent, statement.name, within: limit), statement.name)
    }

    /// Returns the server's name of a statement, which it prepares first if necessary.
    private func preparedName(
        of statement: Statement, _ parameters: [Parameter], within limit: Duration
    ) throws(DatabaseError) -> String {
        if let known = prepared.serverName(of: statement, parameters) { return known }
        let serverName = prepared.begin(statement, parameters)
        let wasSent = sendPreparation(serverName, statement, parameters)
        do {
            _ = try rows(of: collect(wasSent, statement.name, within: limit), statement.name)
        } catch {
            prepared.forget(statement, serverName: serverName)
            throw error
        }
        return serverName
    }

    /// Runs SQL text by the simple protocol; returns the answer to its last command, or its first failure.
    func command(_ sql: String, named name: String, within limit: Duration?) -> ServerAnswer {
        collect(PQsendQuery(pointer, sql) == 1, name, within: limit)
    }

    /// Returns the rows of an answer; throws an error for any other answer.
    func rows(of answer: ServerAnswer, _ name: String) throws(DatabaseError) -> ResultTable {
        switch answer {
        case .rows(let table): return table
        case .failure(let error):
            // The cause of one stale statement (a migration, a pooler's other server) probably made all of them stale.
            if error.isStalePreparation { prepared.forgetAll() }
            throw error
        case .lost(let reason), .unexpected(let reason): throw .connectionLost(during: name, reason)
        case .aborted, .sync: throw .connectionLost(during: name, "an answer that belongs to a pipeline")
        }
    }

    /// Reads all results of the request. After the limit it asks the server to cancel, then gives the connection up.
    private func collect(_ wasSent: Bool, _ name: String, within limit: Duration?) -> ServerAnswer {
        guard wasSent else { return lose() }
        var end = limit.map { ContinuousClock.now + $0 + Self.slack }
        var wasCancelled = false
        var collected: ServerAnswer?
        while true {
            let flushed = PQflush(pointer)
            if flushed < 0 { return lose() }
            if flushed == 0, PQisBusy(pointer) == 0 {
                guard let result = PQgetResult(pointer) else { break }
                let answer = ServerAnswer(result, of: name, over: self)
                if answer.endsConnection || PQstatus(pointer) == CONNECTION_BAD {
                    isBroken = true
                    return answer.endsConnection ? answer : lose()
                }
                collected = Self.first(failure: collected, or: answer)
                continue
            }
            if waitForSocket(flushed == 0 ? POLLIN : POLLIN | POLLOUT, until: end) {
                if PQconsumeInput(pointer) == 0 { return lose() }
            } else if wasCancelled {
                isBroken = true
                return .failure(.statementTimedOut(name))
            } else {
                wasCancelled = true
                end = ContinuousClock.now + Self.slack
                cancelFromAnotherThread()
            }
        }
        return collected ?? lose()
    }

    /// Sends a cancellation from another thread: connecting for it may block for as long as the network does.
    func cancelFromAnotherThread() {
        guard let cancellation = cancellation() else { return }
        _ = startThread { cancellation.send() }
    }

    /// Gives the connection up, for libpq's reason.
    private func lose() -> ServerAnswer {
        isBroken = true
        return .lost(reason: complaint)
    }

    /// Returns the answer to several commands: the first failure, else the last answer.
    private static func first(failure earlier: ServerAnswer?, or answer: ServerAnswer) -> ServerAnswer {
        if case .failure = earlier, let earlier { return earlier }
        return answer
    }
}

extension ServerAnswer {
    /// Whether the connection is unusable after this answer.
    var endsConnection: Bool {
        switch self {
        case .lost, .unexpected: true
        case .rows, .failure, .aborted, .sync: false
        }
    }
}
