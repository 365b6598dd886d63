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
    /// - Throws: `.cannotConnect` when there is no response within the limit.
    func learnSession(within limit: Duration) throws(DatabaseError) {
        let told = PQbackendPID(pointer)
        do throws(DatabaseError) {
            guard let row = try run(Self.askWhoAnswers, [], within: limit).rows.first else {
                throw DatabaseError.cannotConnect("it does not say which process answers")
            }
            session = try row.int4("pid") == told ? .own : .borrowed
        } catch {
            throw .cannotConnect(error.message)
        }
    }
}
