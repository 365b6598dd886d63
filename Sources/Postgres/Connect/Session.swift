import CLibPQ

/// The kind of server session behind a connection.
enum Session: Sendable {
    /// Our own for the life of the connection: prepared statements and settings persist.
    case own
    /// A connection pooler's session, possibly a different one in each transaction. Nothing persists: statements are
    /// sent whole each time, without a name, and settings with every transaction.
    case borrowed
}

extension Connection {
    private static let askWhoAnswers = Statement(name: "who_answers", sql: "SELECT pg_backend_pid() AS pid")

    /// Detects the kind of session, so that no configuration is needed. A pooler answers the start-up itself and makes
    /// its own cancel key, whose process id differs from that of the process that answers statements.
    /// - Throws: the reason why the server did not say it within the limit.
    func learnSession(within limit: Duration) throws(DatabaseError) {
        let expected = PQbackendPID(pointer)
        guard let row = try run(Self.askWhoAnswers, [], within: limit).rows.first else {
            throw DatabaseError(.cannotConnect, "it does not say which process answers")
        }
        session = try row.int4("pid") == expected ? .own : .borrowed
    }
}

/// The statements that one connection has prepared. The name on the server carries a number: a statement that is
/// prepared again (its plan is stale, or its parameters have other types) cannot reuse its name.
struct PreparedStatements {
    private struct Prepared {
        let sql: String
        let types: [UInt32]
        let serverName: String
    }

    private var byName: [String: Prepared] = [:]
    private var generation = 0

    /// Returns the name on the server; nil when the statement must be prepared first.
    func serverName(of statement: Statement, _ parameters: [Parameter]) -> String? {
        guard let prepared = byName[statement.name], prepared.sql == statement.sql,
            prepared.types.elementsEqual(parameters.lazy.map(\.type))
        else { return nil }
        return prepared.serverName
    }

    /// Records that the statement is being prepared and returns the name to use.
    mutating func begin(_ statement: Statement, _ parameters: [Parameter]) -> String {
        let serverName = generation == 0 ? statement.name : "\(statement.name)~\(generation)"
        generation += 1
        byName[statement.name] = Prepared(
            sql: statement.sql, types: parameters.map(\.type), serverName: serverName)
        return serverName
    }

    /// Records that the server does not have the statement, or no longer has it. A later preparation of it stays.
    mutating func forget(_ statement: Statement, serverName: String) {
        if byName[statement.name]?.serverName == serverName { byName[statement.name] = nil }
    }

    /// Records that nothing prepared so far can be relied on.
    mutating func forgetAll() { byName = [:] }
}
