/// A running transaction, for use only inside the body that receives it.
///
/// Its calls block the thread of their connection. After a failed statement PostgreSQL refuses all others, and the
/// transaction is rolled back even when the body catches the error.
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

    /// Runs a statement and returns its rows.
    /// - Throws: `.server`, `.timedOut` or `.connectionLost`.
    @discardableResult
    package func query(_ statement: Statement, _ parameters: [Parameter] = []) throws(DatabaseError) -> [Row] {
        try run(statement, parameters).rows
    }

    /// Runs a statement and returns the number of rows it changed.
    /// - Throws: `.server`, `.timedOut` or `.connectionLost`.
    @discardableResult
    package func execute(_ statement: Statement, _ parameters: [Parameter] = []) throws(DatabaseError) -> Int {
        try run(statement, parameters).affectedRows
    }

    /// Runs several statements, separated by semicolons and without parameters, for migrations. They have no time-out
    /// unless they set one. They must not end the transaction.
    /// - Throws: `.server` or `.connectionLost`.
    package func script(_ sql: String) throws(DatabaseError) {
        try command("SET LOCAL statement_timeout = 0")
        try command(sql)
        try command("SET LOCAL statement_timeout = \(statementTimeoutMilliseconds)")
    }

    /// Ends all use of the transaction, in case the body kept a reference.
    func end() { isOver = true }

    private func run(_ statement: Statement, _ parameters: [Parameter]) throws(DatabaseError) -> ResultTable {
        if isOver { throw .closed }
        do {
            return try connection.run(
                statement, parameters, within: .milliseconds(statementTimeoutMilliseconds))
        } catch {
            failure = failure ?? error
            throw error
        }
    }

    private func command(_ sql: String) throws(DatabaseError) {
        if isOver { throw .closed }
        do {
            _ = try connection.rows(of: connection.command(sql, named: "script", within: nil), "script")
        } catch {
            failure = failure ?? error
            throw error
        }
    }
}
