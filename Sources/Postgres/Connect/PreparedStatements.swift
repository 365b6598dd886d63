/// What one connection has prepared. The name on the server carries a number, because a statement that has to be
/// prepared again (its plan is stale, or its parameters have other types) cannot take the same name.
struct PreparedStatements {
    private struct Prepared {
        let sql: String
        let types: [UInt32]
        let serverName: String
    }

    private var byName: [String: Prepared] = [:]
    private var generation = 0

    /// The name on the server; nil when the statement has to be prepared first.
    func serverName(of statement: Statement, _ parameters: [Parameter]) -> String? {
        guard let prepared = byName[statement.name], prepared.sql == statement.sql,
            prepared.types.elementsEqual(parameters.lazy.map(\.type))
        else { return nil }
        return prepared.serverName
    }

    /// Notes that the statement is being prepared and answers the name to use.
    mutating func begin(_ statement: Statement, _ parameters: [Parameter]) -> String {
        let serverName = generation == 0 ? statement.name : "\(statement.name)~\(generation)"
        generation += 1
        byName[statement.name] = Prepared(
            sql: statement.sql, types: parameters.map(\.type), serverName: serverName)
        return serverName
    }

    /// Notes that the server does not have it, or not any more; a later preparation of that name stays.
    mutating func forget(_ statement: Statement, serverName: String) {
        if byName[statement.name]?.serverName == serverName { byName[statement.name] = nil }
    }

    /// Notes that nothing prepared so far can be relied on.
    mutating func forgetAll() { byName = [:] }
}
