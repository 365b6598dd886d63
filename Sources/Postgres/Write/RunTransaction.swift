import CLibPQ

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
        switch outcome {
        case .success(let value):
            do {
                if let failure = transaction.failure { throw failure }
                try commit(within: limit)
                return .ended(.success(value))
            } catch {
                rollBack(within: limit)
                return .ended(.failure(error))
            }
        case .failure(let error):
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
            do {
                let table = try run(statement, parameters, within: .milliseconds(statementTimeoutMilliseconds))
                return .ended(.success(table.rows))
            } catch {
                return .ended(.failure(isBroken ? DatabaseError.commitUnknown(error.message) : error))
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
        switch command("COMMIT", named: "COMMIT", within: limit) {
        case .rows(let table):
            guard table.commandTag != "COMMIT" else { return }
            throw DatabaseError(
                .server(sqlState: "25P02", constraint: nil, table: nil),
                "PostgreSQL answered COMMIT with \(table.commandTag): the transaction was not kept.")
        case .failure(let error):
            // An error on a live connection is definite: a deferred constraint failed and nothing was committed.
            throw isBroken ? .commitUnknown(error.message) : error
        case .lost(let reason), .unexpected(let reason): throw .commitUnknown(reason)
        case .aborted, .sync: throw .commitUnknown("an answer that belongs to a pipeline")
        }
    }

    /// Leaves the connection idle or broken; the server rolls back a broken one itself.
    private func rollBack(within limit: Duration) {
        guard !isBroken, PQtransactionStatus(pointer) != PQTRANS_IDLE else { return }
        _ = command("ROLLBACK", named: "ROLLBACK", within: limit)
        if PQtransactionStatus(pointer) != PQTRANS_IDLE { isBroken = true }
    }
}
