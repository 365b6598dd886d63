import CLibPQ

/// Whose server session a connection speaks to.
enum Session: Sendable {
    /// Ours as long as the connection lives: what is prepared and set there stays.
    case own
    /// A connection pooler's, and perhaps another one in each transaction. Nothing stays: statements are sent whole each
    /// time, without a name, and settings with every transaction.
    case borrowed
}

extension Connection {
    private static let askWhoAnswers = Statement(name: "who_answers", sql: "SELECT pg_backend_pid() AS pid")

    /// Finds out whose session it is, so that nobody has to configure it: a pooler answers the start-up itself, with a key
    /// for cancellations of its own making, and that does not name the process that then answers.
    /// - Throws: `.cannotConnect` when there is no answer within the limit.
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
