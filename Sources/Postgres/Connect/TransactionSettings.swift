/// What holds for everything we send: set once where the session is ours, else with every transaction.
struct TransactionSettings: Sendable {
    struct Value: Sendable {
        /// The parameter for a whole session.
        let sessionName: String
        /// The parameter for one transaction.
        let name: String
        let value: String
    }

    let values: [Value]

    init(_ configuration: DatabaseConfiguration, for role: ConnectionSettings.Role) {
        let timeout = "\(configuration.statementTimeoutMilliseconds)"
        var values = [
            Value(sessionName: "statement_timeout", name: "statement_timeout", value: timeout),
            // Our statements are short; compiling one costs more than it can save, and a wrong estimate is enough to begin.
            Value(sessionName: "jit", name: "jit", value: "off"),
        ]
        switch role {
        case .reads:
            values.append(
                Value(sessionName: "default_transaction_read_only", name: "transaction_read_only", value: "on"))
        case .transactions: break
        }
        self.values = values
    }

    /// As commands behind BEGIN.
    var commands: String { values.map { "SET LOCAL \($0.name) = '\($0.value)'" }.joined(separator: "; ") }

    /// As the first statement of a batch of reads, which is one transaction although nothing begins it: there SET LOCAL
    /// would warn each time.
    var statement: Statement {
        let calls = values.map { "set_config('\($0.name)', '\($0.value)', true)" }
        return Statement(name: "transaction_settings", sql: "SELECT " + calls.joined(separator: ", "))
    }
}
